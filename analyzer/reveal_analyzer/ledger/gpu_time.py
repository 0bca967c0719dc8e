"""GPU time of the pods of a node: what they had, and what of it findings cost them.

Of a pod that several findings delay, the finding that costs most counts.  So the lost time is a
part of the allocated time, and what is left is the time in which jobs ran at full pace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from reveal_analyzer.subjects.directory import SubjectSource
from reveal_contract.subjects import Identity
from reveal_contract.time_units import NS_PER_HOUR, NS_PER_SECOND

_INTERVAL_NS = 10 * NS_PER_SECOND  # between two counts
_GAP_NS = 60 * NS_PER_SECOND  # after a longer one nobody knows which pods there were meanwhile

PodName = tuple[str, str]  # namespace and name


class GpuHours(NamedTuple):
    """GPU-hours that pods had, and how many of these they lost."""

    allocated: float = 0.0
    lost: float = 0.0

    def plus(self, other: GpuHours) -> GpuHours:
        """Return the sum."""
        return GpuHours(self.allocated + other.allocated, self.lost + other.lost)


class GpuTime:
    """Counts the GPU time of the pods of one node, by namespace.

    ``subjects`` returns the node's subjects, and asks nobody for them.  ``lost_gpus`` returns how
    many of its GPUs each pod loses now.
    """

    def __init__(
        self, subjects: SubjectSource, lost_gpus: Callable[[], Mapping[PodName, float]]
    ) -> None:
        self._subjects, self._lost_gpus = subjects, lost_gpus
        self._counted_ns = 0

    def push(self, now_ns: int) -> dict[str, GpuHours]:
        """Return the time since the last count by namespace; empty if that was just now."""
        elapsed_ns = now_ns - self._counted_ns
        if 0 <= elapsed_ns < _INTERVAL_NS:
            return {}
        self._counted_ns = now_ns
        # a clock that was set back is a gap, too
        return self._count(elapsed_ns, now_ns) if 0 < elapsed_ns <= _GAP_NS else {}

    def _count(self, elapsed_ns: int, now_ns: int) -> dict[str, GpuHours]:
        hours, lost_gpus = elapsed_ns / NS_PER_HOUR, self._lost_gpus()
        counted: dict[str, GpuHours] = {}
        for pod, gpus in _gpus_of_pods(self._subjects(), now_ns).items():
            before = counted.get(pod[0], GpuHours())
            lost = min(float(gpus), lost_gpus.get(pod, 0.0))
            counted[pod[0]] = before.plus(GpuHours(hours * gpus, hours * lost))
        return counted


def _gpus_of_pods(subjects: Iterable[Identity], now_ns: int) -> dict[PodName, int]:
    """Return the GPUs of each pod that is alive; the containers of a pod have the same."""
    return {
        (identity.namespace, identity.name): identity.gpus
        for identity in subjects
        if identity.gpus and identity.is_alive(now_ns)
    }
