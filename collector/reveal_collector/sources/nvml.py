"""Source: NVIDIA GPUs through NVML (docs.nvidia.com/deploy/nvml-api).

A thread of its own polls the driver; these sources return its last values without waiting.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from reveal_collector.kernel_interfaces.errors import LayoutChanged, Unsupported
from reveal_collector.nvml import library
from reveal_collector.nvml.snapshots import QUICK, STALE_NS, STATE, SUBJECTS, GpuSnapshot
from reveal_collector.readers.source import Outage, Roots, Source
from reveal_collector.subjects.pods.process_owner import SubjectOfPid
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane

if TYPE_CHECKING:
    from reveal_collector.nvml.poller import NvmlPoller

DRIVER = "nvml"  # of all sources of the poller, whose outages come together
_NAMES = {QUICK: "nvml", STATE: "nvml-state", SUBJECTS: "nvml-subjects"}


def sources(
    roots: Roots, profiling: bool = False, subject_of_pid: SubjectOfPid | None = None
) -> list[Source]:
    """Return the sources of utilization, state and subjects; ``profiling`` adds GPM metrics."""
    shared = SharedPoller(roots, profiling, subject_of_pid)
    return [GpuSource(roots, shared, name) for name in (QUICK, STATE, SUBJECTS)]


class SharedPoller:
    """One poller for all sources, created where a driver exists: it needs 1 MB."""

    def __init__(self, roots: Roots, profiling: bool, subject_of_pid: SubjectOfPid | None) -> None:
        self.poller: NvmlPoller | None = None
        self._roots, self._profiling, self._subject_of_pid = roots, profiling, subject_of_pid

    def start(self) -> NvmlPoller:
        """Return the poller with one more user; raises ``Unsupported`` as it does."""
        if self.poller is None:
            library.load()
            from reveal_collector.nvml.poller import NvmlPoller  # noqa: PLC0415

            self.poller = NvmlPoller(self._roots, self._profiling, self._subject_of_pid)
        self.poller.start()
        return self.poller


class GpuSource:
    """One snapshot of the poller as a source."""

    driver = DRIVER

    def __init__(self, roots: Roots, shared: SharedPoller, name: str) -> None:
        self.name = _NAMES[name]
        self.lane = Lane.FAST if name == QUICK else Lane.SLOW
        self.channels: tuple[Channel, ...] = ()
        self._roots, self._shared, self._snapshot_name = roots, shared, name
        self._poller: NvmlPoller | None = None
        self._started = False
        self._no_values: tuple[None, ...] = ()

    @property
    def degraded(self) -> Sequence[str]:
        """What the poller reads less often or not at all; only one source reports it."""
        poller = self._poller
        if poller is None or self._snapshot_name != QUICK or poller.outage is not None:
            return ()
        return poller.degraded

    @property
    def driver_cpu_ns(self) -> int:
        """The CPU time of the poller's thread; only one source reports it."""
        poller = self._poller
        return 0 if poller is None or self._snapshot_name != QUICK else poller.cpu_ns

    def outage(self) -> Outage | None:
        """Return since when the driver has not answered, or failed; None while it answers."""
        if self._poller is None:
            return None
        taken_ns = self._poller.snapshots[self._snapshot_name].taken_ns
        hangs = time.monotonic_ns() - taken_ns > STALE_NS
        return self._poller.outage or (Outage(taken_ns) if hangs else None)

    def open(self) -> None:
        if not self._roots.live:
            raise Unsupported("GPUs can be queried only on the running machine itself")
        self.close()
        self._poller = self._shared.start()
        self._started = True
        self._update_channels(self._poller.snapshots[self._snapshot_name])

    def read(self) -> Sequence[int | None]:
        if self._poller is None:
            return self._no_values
        snapshot, now = self._poller.snapshots[self._snapshot_name], time.monotonic_ns()
        if self._snapshot_name == STATE:
            self._poller.state_read_ns = now
        if snapshot.channels is not self.channels:
            self._update_channels(snapshot)
            raise LayoutChanged(self.name)
        if now - snapshot.taken_ns > STALE_NS:
            return self._no_values  # the driver hangs: its last values say nothing about now
        return snapshot.values

    def close(self) -> None:
        if self._started and self._poller is not None:
            self._started = False
            self._poller.stop()

    def _update_channels(self, snapshot: GpuSnapshot) -> None:
        self.channels = snapshot.channels
        self._no_values = (None,) * len(snapshot.channels)
