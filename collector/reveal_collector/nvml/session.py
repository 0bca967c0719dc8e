"""One run of the NVML library: enumerates the GPUs and queries them in rounds."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from reveal_collector.nvml import library
from reveal_collector.nvml.bus import DRIVER_FOLDER, BusGpus
from reveal_collector.nvml.devices import Enumeration, Gpu, GpuDevice, enumerate_all
from reveal_collector.nvml.events import XidEvents
from reveal_collector.nvml.gpu_processes import GpuProcesses
from reveal_collector.nvml.library import Handle, Library
from reveal_collector.nvml.metric_queries import Query, supported_queries
from reveal_collector.nvml.profiling import GpmProfile
from reveal_collector.nvml.query_budget import QueryBudget
from reveal_collector.nvml.query_schedule import Clock, QuerySchedule

log = logging.getLogger(__name__)

# After so long, slow queries wait for the next round: the queries of the ticks come first.
_MAX_ROUND_NS = 50_000_000


@dataclass
class _GpuState:
    """A GPU with its schedules (itself first, then its MIG instances) and its processes."""

    device: GpuDevice
    schedules: list[QuerySchedule]
    processes: GpuProcesses
    profiles: list[GpmProfile]

    @property
    def gpu(self) -> Gpu:
        return self.device.gpu

    def matches(self, device: GpuDevice) -> bool:
        """Return whether the device is this GPU, with the same handle and MIG instances."""
        same = library.address(self.device.handle) == library.address(device.handle)
        return same and self.gpu == device.gpu and not self.schedules[0].lost


class NvmlSession:
    """The GPUs, each with the index it had when it was found first (``numbers``, by UUID).

    GPUs that never answered are known from the driver's count and from the PCI bus.
    """

    def __init__(
        self,
        nvml: Library,
        sys: Path,
        numbers: dict[str, int],
        profiling: bool,
        clock: Clock,
        driver_folder: Path = DRIVER_FOLDER,
    ) -> None:
        self.budget = QueryBudget()
        self.spent_ns = 0
        self._nvml, self._sys, self._clock = nvml, sys, clock
        self._numbers, self._profiling = numbers, profiling
        self._gpus: dict[str, _GpuState] = {}
        self._devices: tuple[GpuDevice, ...] = ()
        self._bus = BusGpus(sys, driver_folder)
        self._never_answered: tuple[str, ...] = ()
        self._events: XidEvents | None = None
        self._event_gpus: set[int] = set()
        self.enumerate()

    @property
    def gpus(self) -> tuple[Gpu, ...]:
        return tuple(state.gpu for state in self._gpus.values())

    @property
    def schedules(self) -> Iterator[QuerySchedule]:
        for state in self._gpus.values():
            yield from state.schedules

    @property
    def processes(self) -> dict[int, GpuProcesses]:
        """The processes by the index of the GPU."""
        return {state.gpu.index: state.processes for state in self._gpus.values()}

    @property
    def event_gpus(self) -> frozenset[int]:
        """The indices of the GPUs that report XID errors, or did before they were lost."""
        return frozenset(self._event_gpus)

    def lost(self) -> dict[str, bool]:
        """Return whether a GPU does not answer now, of all that there should be.

        The keys are indices; of a GPU that the driver does not count, its PCI address.
        """
        lost = dict.fromkeys(self._numbers.values(), True)
        lost |= {state.gpu.index: state.schedules[0].lost for state in self._gpus.values()}
        known = {str(index): gone for index, gone in sorted(lost.items())}
        return known | dict.fromkeys(self._never_answered, True)

    def enumerate(self) -> None:
        """Find the GPUs and MIG instances; raises ``NVMLError`` if the driver is gone."""
        counted = enumerate_all(self._nvml, self._sys)
        found = tuple(
            replace(device, gpu=replace(device.gpu, index=self._number(device.gpu)))
            for device in counted.devices
        )
        self._note_silent(counted)
        if found == self._devices and not any(schedule.lost for schedule in self.schedules):
            return
        uuids = {device.gpu.uuid for device in found}
        for uuid, state in self._gpus.items():
            # A GPU that was removed keeps its columns, without values.
            if uuid not in uuids:
                for schedule in state.schedules:
                    schedule.mark_lost()
        for device in found:
            # Hot-plug: a GPU is new, or its MIG instances or its handle changed, or it was lost.
            known = self._gpus.get(device.gpu.uuid)
            if known is None or not known.matches(device):
                self._add(device)
        self._devices = found
        self._renew_events()
        self._event_gpus |= self._events.gpus if self._events else set()
        self.budget.set_queries(
            period for schedule in self.schedules for period in schedule.periods
        )

    def round(self, now_ns: int) -> Iterator[tuple[int, int]]:
        """Send the queries that are due; return new XID errors as (GPU, code).

        Raises ``NVMLError`` if the driver is gone.
        """
        began = self._clock()
        for quick in (True, False):
            for state in self._gpus.values():
                for schedule in state.schedules:
                    for query in schedule.due(now_ns, quick):
                        if not quick and self._clock() - began > _MAX_ROUND_NS:
                            break
                        self.spent_ns += schedule.send(self._nvml, query, self.budget, self._clock)
                if state.schedules[0].lost:
                    state.processes.clear()
        return self._events.drain() if self._events else iter(())

    def close(self) -> None:
        if self._events:
            self._events.close()
        for uuid in self._gpus:
            self._release(uuid)
        library.stop(self._nvml)

    def _note_silent(self, counted: Enumeration) -> None:
        """Note the GPUs that have never answered, although the driver or the bus has them."""
        numbers = set(self._numbers.values())
        silent = tuple(str(index) for index in counted.silent if index not in numbers)
        addresses = {state.gpu.pci_bus_id for state in self._gpus.values()}
        addresses |= {device.gpu.pci_bus_id for device in counted.devices}
        # where some are refused, it is not known which of those on the bus they are
        unlisted = () if counted.refused else self._bus.unlisted(addresses)
        # each silent index is one of those on the bus: the index names it where all have one
        never = unlisted if len(unlisted) > len(silent) else silent
        if set(never) - set(self._never_answered):
            names, on_bus = ", ".join(never), ", ".join(unlisted) or "unknown"
            log.warning("GPU %s does not answer (on the PCI bus: %s)", names, on_bus)
        self._never_answered = never

    def _number(self, gpu: Gpu) -> int:
        """Return the index at first sight, or the next free one: it names the channels."""
        if gpu.uuid not in self._numbers:
            taken = set(self._numbers.values())
            free = (n for n in range(gpu.index, gpu.index + len(taken) + 1) if n not in taken)
            self._numbers[gpu.uuid] = next(free)
        return self._numbers[gpu.uuid]

    def _add(self, device: GpuDevice) -> None:
        """Find the queries of a GPU; a lost one keeps its columns, without values."""
        processes = GpuProcesses()
        profiles: list[GpmProfile] = []
        schedules: list[QuerySchedule] = []
        for index, (instance, handle) in enumerate(device.instances):
            try:
                queries = supported_queries(self._nvml, handle, mig=index > 0)
            except self._nvml.NVMLError as error:
                if library.is_driver_gone(error.value):
                    raise
                self._mark_lost(device)
                return
            if index == 0:
                queries += self._supported(handle, processes.queries())
            if profile := self._profile(device, index):
                profiles.append(profile)
                queries.append(profile.query())
            schedules.append(QuerySchedule(instance, handle, queries))
        processes.clear()
        self._release(device.gpu.uuid)
        self._publish(_GpuState(device, schedules, processes, profiles))

    def _mark_lost(self, device: GpuDevice) -> None:
        state = self._gpus.get(device.gpu.uuid)
        if state is None:
            schedule = QuerySchedule(str(device.gpu.index), device.handle, ())
            state = _GpuState(device, [schedule], GpuProcesses(), [])
            self._publish(state)
        for schedule in state.schedules:
            schedule.mark_lost()

    def _publish(self, state: _GpuState) -> None:
        """Add the state in a new mapping, as other threads may iterate over the old one."""
        self._gpus = self._gpus | {state.gpu.uuid: state}

    def _release(self, uuid: str) -> None:
        if uuid in self._gpus:
            for profile in self._gpus[uuid].profiles:
                profile.close()

    def _supported(self, handle: Handle, queries: Sequence[Query]) -> Iterator[Query]:
        for query in queries:
            try:
                query.read(self._nvml, handle)
            except self._nvml.NVMLError as error:
                if library.is_unsupported(error.value) or library.is_gpu_lost(error.value):
                    continue
            yield query

    def _profile(self, device: GpuDevice, index: int) -> GpmProfile | None:
        """Return the GPM profile of a GPU, or of the GPU instance of a MIG device."""
        # In MIG mode only the GPU instances have the counters, else only the GPU itself.
        if not self._profiling or device.gpu.mig_enabled is (index == 0):
            return None
        instance = device.gpu.mig[index - 1].gpu_instance if index else None
        try:
            if GpmProfile.supported(self._nvml, device.handle):
                return GpmProfile(self._nvml, device.handle, instance)
        except self._nvml.NVMLError:
            return None
        return None

    def _renew_events(self) -> None:
        if self._events:
            self._events.close()
        self._events = XidEvents(self._nvml, self._devices)
