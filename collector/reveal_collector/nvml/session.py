"""All GPUs from one start of the library to its end: what there is, asked in rounds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from reveal_collector.nvml import devices, library
from reveal_collector.nvml.budget import Budget
from reveal_collector.nvml.devices import Device, Gpu
from reveal_collector.nvml.events import XidEvents
from reveal_collector.nvml.holders import Holders
from reveal_collector.nvml.library import Handle, Library
from reveal_collector.nvml.profiling import Profile
from reveal_collector.nvml.queries import Query, learn
from reveal_collector.nvml.unit import Clock, Unit

# slow queries wait for the next round when one has taken this long: ticks come first
_ROUND_NS = 50_000_000


@dataclass
class _Card:
    """A GPU with its units (itself first, then its MIG instances) and its processes."""

    device: Device
    units: list[Unit]
    holders: Holders
    profiles: list[Profile]

    @property
    def gpu(self) -> Gpu:
        return self.device.gpu

    def is_of(self, device: Device) -> bool:
        """Whether it is this device, cut up alike and asked by the same handle."""
        same = library.address(self.device.handle) == library.address(device.handle)
        return same and self.gpu == device.gpu and not self.units[0].lost


class Session:
    """The GPUs, each under the number it had when it was first seen (``numbers``, by UUID)."""

    def __init__(
        self, nvml: Library, sys: Path, numbers: dict[str, int], profiling: bool, clock: Clock
    ) -> None:
        self.budget = Budget()
        self.spent_ns = 0
        self._nvml, self._sys, self._clock = nvml, sys, clock
        self._numbers, self._profiling = numbers, profiling
        self._cards: dict[str, _Card] = {}
        self._devices: tuple[Device, ...] = ()
        self._events: XidEvents | None = None
        self._telling: set[int] = set()
        self.enumerate()

    @property
    def gpus(self) -> tuple[Gpu, ...]:
        return tuple(card.gpu for card in self._cards.values())

    @property
    def units(self) -> Iterator[Unit]:
        for card in self._cards.values():
            yield from card.units

    @property
    def holders(self) -> dict[int, Holders]:
        """The processes by the number of the GPU."""
        return {card.gpu.index: card.holders for card in self._cards.values()}

    @property
    def tell_events(self) -> frozenset[int]:
        """The numbers of the GPUs that tell of XID errors, or did before they were lost."""
        return frozenset(self._telling)

    def lost(self) -> dict[int, bool]:
        """By number, whether a GPU that was once seen does not answer now."""
        state = dict.fromkeys(self._numbers.values(), True)
        state |= {card.gpu.index: card.units[0].lost for card in self._cards.values()}
        return dict(sorted(state.items()))

    def enumerate(self) -> None:
        """See which GPUs and MIG instances there are; raises ``NVMLError`` for no driver."""
        found = tuple(
            replace(each, gpu=replace(each.gpu, index=self._number(each.gpu)))
            for each in devices.devices(self._nvml, self._sys)
        )
        if found == self._devices and not any(unit.lost for unit in self.units):
            return
        present = {each.gpu.uuid for each in found}
        for uuid, card in self._cards.items():
            if uuid not in present:  # its columns stay, empty
                for unit in card.units:
                    unit.lose()
        for each in found:
            known = self._cards.get(each.gpu.uuid)
            if known is None or not known.is_of(each):
                self._take(each)
        self._devices = found
        self._renew_events()
        self._telling |= self._events.gpus if self._events else set()
        self.budget.keep(wanted for unit in self.units for wanted in unit.wanted)

    def round(self) -> Iterator[tuple[int, int]]:
        """Ask what is due; the XID errors since the last round as (GPU, code).

        Raises ``NVMLError`` where the driver is gone.
        """
        began = self._clock()
        for quick in (True, False):
            for card in self._cards.values():
                for unit in card.units:
                    for query in unit.due(began, quick):
                        if not quick and self._clock() - began > _ROUND_NS:
                            break
                        self.spent_ns += unit.ask(self._nvml, query, self.budget, self._clock)
                if card.units[0].lost:
                    card.holders.clear()
        return self._events.drain() if self._events else iter(())

    def close(self) -> None:
        if self._events:
            self._events.close()
        for uuid in self._cards:
            self._release(uuid)
        library.stop(self._nvml)

    def _number(self, gpu: Gpu) -> int:
        """Its index when it was first seen, or the next free one: channels are named by it."""
        if gpu.uuid not in self._numbers:
            taken = set(self._numbers.values())
            free = (n for n in range(gpu.index, gpu.index + len(taken) + 1) if n not in taken)
            self._numbers[gpu.uuid] = next(free)
        return self._numbers[gpu.uuid]

    def _take(self, device: Device) -> None:
        """Learn what it answers; one that is lost keeps the columns it had, empty."""
        holders = Holders()
        profiles: list[Profile] = []
        units: list[Unit] = []
        for place, (instance, handle) in enumerate(device.instances):
            try:
                queries = learn(self._nvml, handle, part=place > 0)
            except self._nvml.NVMLError as error:
                if library.is_gone(error.value):
                    raise
                self._lose(device)
                return
            if place == 0:
                queries += self._answered(handle, holders.queries())
            if profile := self._profile(device, place):
                profiles.append(profile)
                queries.append(profile.query())
            units.append(Unit(instance, handle, queries))
        holders.clear()
        self._release(device.gpu.uuid)
        self._put(_Card(device, units, holders, profiles))

    def _lose(self, device: Device) -> None:
        card = self._cards.get(device.gpu.uuid)
        if card is None:
            unit = Unit(str(device.gpu.index), device.handle, ())
            card = _Card(device, [unit], Holders(), [])
            self._put(card)
        for unit in card.units:
            unit.lose()

    def _put(self, card: _Card) -> None:
        """As a new mapping: other threads may be going through the old one."""
        self._cards = self._cards | {card.gpu.uuid: card}

    def _release(self, uuid: str) -> None:
        if uuid in self._cards:
            for profile in self._cards[uuid].profiles:
                profile.close()

    def _answered(self, handle: Handle, queries: Sequence[Query]) -> Iterator[Query]:
        for query in queries:
            try:
                query.ask(self._nvml, handle)
            except self._nvml.NVMLError as error:
                if library.is_absent(error.value) or library.is_lost(error.value):
                    continue
            yield query

    def _profile(self, device: Device, place: int) -> Profile | None:
        """GPM of the GPU, or in MIG mode of the GPU instance behind one of its parts."""
        if not self._profiling or device.gpu.mig_enabled is (place == 0):
            return None
        instance = device.gpu.mig[place - 1].gpu_instance if place else None
        try:
            if Profile.supported(self._nvml, device.handle):
                return Profile(self._nvml, device.handle, instance)
        except self._nvml.NVMLError:
            return None
        return None

    def _renew_events(self) -> None:
        if self._events:
            self._events.close()
        self._events = XidEvents(self._nvml, self._devices)
