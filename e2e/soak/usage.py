"""What Reveal's pods use, as the kubelet of each node reads it from their cgroups."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

# the memory of a single minute swings by what a garbage collector has not come to yet
_MEDIAN_OF = 3
# by then one job of each kind has come, changed phase and gone: each takes a table, and what the
# allocator keeps of the old one
SETTLED_MINUTES = 10


@dataclass(frozen=True)
class Sample:
    """One pod at one moment: CPU since its start, memory that would not be given back."""

    minute: float
    node: str
    pod: str
    component: str
    cpu_seconds: float
    read_time: float  # of the CPU clock, which the kubelet reads when it likes
    working_set_bytes: int
    rss_bytes: int


@dataclass(frozen=True)
class Cost:
    """A component on a node over the whole run."""

    node: str
    component: str
    pods: int
    cpu_millicores: float
    worst_minute_millicores: float
    settled_megabytes: float  # after the first minutes
    final_megabytes: float
    largest_megabytes: float
    rss_megabytes: float

    @property
    def growth_percent(self) -> float:
        """Of the working set, from when it had settled to the end."""
        return 100 * (self.final_megabytes / self.settled_megabytes - 1)


def samples(
    summary: Mapping[str, Any], components: Mapping[tuple[str, str], str], minute: float
) -> list[Sample]:
    """Of a kubelet's ``/stats/summary`` the pods with a component, by namespace and name."""
    found = []
    for pod in summary.get("pods", ()):
        reference = pod["podRef"]
        component = components.get((reference["namespace"], reference["name"]))
        cpu, memory = pod.get("cpu", {}), pod.get("memory", {})
        if component and "usageCoreNanoSeconds" in cpu and "workingSetBytes" in memory:
            found.append(Sample(
                minute, summary["node"]["nodeName"], reference["name"], component,
                cpu["usageCoreNanoSeconds"] / 1e9, datetime.fromisoformat(cpu["time"]).timestamp(),
                memory["workingSetBytes"], memory.get("rssBytes", 0),
            ))  # fmt: skip
    return found


def costs(samples: Iterable[Sample]) -> list[Cost]:
    """One row a component and node."""
    groups: dict[tuple[str, str], list[Sample]] = {}
    for sample in samples:
        groups.setdefault((sample.component, sample.node), []).append(sample)
    return [_cost(group) for _, group in sorted(groups.items())]


def _cost(group: Sequence[Sample]) -> Cost:
    rates = _rates(group)
    memory = _by_minute(group)
    settled = [size for minute, size in memory if minute >= SETTLED_MINUTES - 0.5]
    # a run that ends before has no first minutes to leave out
    judged = settled or [size for _, size in memory]
    spent = sum(used for used, _ in rates), sum(seconds for _, seconds in rates)
    return Cost(
        group[0].node, group[0].component, len({sample.pod for sample in group}),
        1000 * spent[0] / spent[1] if spent[1] else 0.0,
        max((1000 * used / seconds for used, seconds in rates), default=0.0),
        statistics.median(judged[:_MEDIAN_OF]), statistics.median(judged[-_MEDIAN_OF:]),
        max(size for _, size in memory), max(sample.rss_bytes for sample in group) / 1e6,
    )  # fmt: skip


def _rates(group: Sequence[Sample]) -> list[tuple[float, float]]:
    """CPU seconds and seconds between two samples of one pod; a clock read once counts once."""
    rates = []
    last: dict[str, Sample] = {}
    for sample in group:
        before = last.setdefault(sample.pod, sample)
        if sample.read_time > before.read_time:
            rates.append(
                (sample.cpu_seconds - before.cpu_seconds, sample.read_time - before.read_time)
            )
            last[sample.pod] = sample
    return rates


def _by_minute(group: Iterable[Sample]) -> list[tuple[float, float]]:
    """Megabytes, pods that run side by side together."""
    sizes: dict[float, float] = {}
    for sample in group:
        sizes[sample.minute] = sizes.get(sample.minute, 0.0) + sample.working_set_bytes / 1e6
    return sorted(sizes.items())
