"""What the rows of the table have in common: names, seeds, clips and lasting causes."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass

from scenariobench import lasting
from scenariobench.clip import Clip
from scenariobench.library import Library
from scenariobench.timeline import Span, Timeline
from scenariobench.truths import truth_of

ONSET_S = 120  # healthy seconds before the first fault
TAIL_S = 130  # seconds after the last fault, so that it can resolve
WORKLOADS = ("train", "server", "loader")


@dataclass(frozen=True)
class Planned:
    """A timeline that can be built; building it reads clips."""

    row: str
    name: str
    make: Callable[[], Timeline]

    @property
    def label(self) -> str:
        return f"{self.row}/{self.name}"


def seed_of(label: str) -> int:
    """Return the seed of a timeline, a hash of its label."""
    return zlib.crc32(label.encode())


def timeline(
    row: str, name: str, base: tuple[Clip, ...], spans: tuple[Span, ...], seconds: int
) -> Timeline:
    """Return a timeline with one truth for each span."""
    truths = tuple(truth_of(span, number, base[0]) for number, span in enumerate(spans))
    return Timeline(row, name, seed_of(f"{row}/{name}"), seconds, base, spans, truths)


def clip_beside(library: Library, fault: str, *workloads: str) -> Clip:
    """Return the recording of a fault beside the first of these workloads that has one."""
    clip = library.fault(fault, *(workloads or WORKLOADS))
    assert clip is not None
    return clip


def in_turn(number: int) -> tuple[str, ...]:
    """Return the workloads in an order that begins with another one for each number."""
    first = number % len(WORKLOADS)
    return WORKLOADS[first:] + WORKLOADS[:first]


def quota(library: Library) -> Clip | None:
    """Return the recording of a throttled workload, if there is one."""
    for name in ("cpu_quota", "quota_half"):
        if (clip := library.fault(name, *WORKLOADS)) is not None:
            return clip
    return None


def lasting_span(library: Library, kind: str, start: int, seconds: int, workload: str) -> Span:
    """Return a lasting cause as a layer."""
    if kind == "remap":
        clip = lasting.pending_row_remap()
    elif kind == "throttled":
        throttled = quota(library)
        assert throttled is not None
        clip = lasting.throttled_pod(throttled)
    else:
        found = library.fault("cpu_contend", workload, *WORKLOADS)
        assert found is not None
        clip = found
    return Span(clip, start, seconds, layered=True)
