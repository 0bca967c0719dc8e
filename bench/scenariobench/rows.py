"""The rows of the table: which timelines there are.

A timeline is built from its name and the recorded clips alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from reveal_contract.metric import Subsystem
from scenariobench.disturbed_rows import disturbed, healthy
from scenariobench.library import Library
from scenariobench.row_parts import (
    ONSET_S,
    TAIL_S,
    WORKLOADS,
    Planned,
    clip_beside,
    in_turn,
    lasting_span,
    quota,
    timeline,
)
from scenariobench.timeline import AnalyzerChange, AnalyzerEvent, Span, Timeline

FAULT_S = 40
HOUR_S = 3600


def planned(library: Library) -> list[Planned]:
    """Return every timeline that the recorded clips allow."""
    return [
        *_lasting(library), *_two(library), *_again(library), *_analyzer(library),
        *disturbed(library), *healthy(library),
    ]  # fmt: skip


# -- a lasting certain cause, and another fault after 5 and 60 min of it

_LASTING = ("throttled", "remap", "pressure")


def _lasting(library: Library) -> Iterator[Planned]:
    """Yield each fault once, beside one of the workloads and one of the causes, in turn."""
    number = 0
    for fault, workloads in _workloads_by_fault(library).items():
        kinds = [kind for kind in _LASTING if _can_last(library, kind, fault)]
        if not kinds:
            continue
        kind = kinds[number % len(kinds)]
        workload = workloads[number // len(_LASTING) % len(workloads)]
        number += 1
        make = partial(_lasting_timeline, library, kind, workload, fault)
        yield Planned("lasting", f"{kind}-{workload}-{fault}", make)


def _workloads_by_fault(library: Library) -> dict[str, list[str]]:
    """Return the workloads beside which each fault was recorded."""
    found: dict[str, list[str]] = {}
    for workload in WORKLOADS:
        for _, fault in library.faults(workload):
            found.setdefault(fault, []).append(workload)
    return dict(sorted(found.items()))


def _can_last(library: Library, kind: str, fault: str) -> bool:
    clip = library.fault(fault)
    if clip is None or clip.fault is None:
        return False
    if kind == "throttled":
        return quota(library) is not None
    # a second fault of the CPU cannot be distinguished from the pressure itself
    return kind == "remap" or Subsystem.CPU not in clip.fault.subsystems


def _lasting_timeline(library: Library, kind: str, workload: str, fault: str) -> Timeline:
    clip = clip_beside(library, fault, workload)
    seconds = ONSET_S + HOUR_S + FAULT_S + TAIL_S
    long = lasting_span(library, kind, ONSET_S, seconds, workload)
    spans = (
        Span(clip, ONSET_S + 300, FAULT_S),
        Span(clip, ONSET_S + HOUR_S, FAULT_S),
        long,
    )
    built = timeline("lasting", f"{kind}-{workload}-{fault}", library.base(clip), spans, seconds)
    last = replace(built.truths[-1], name=kind, lasting=True)
    return replace(built, truths=(*built.truths[:-1], last))


# -- two faults at once

_OTHER = (
    ("cpu_contend", "loss_5"), ("slow_disk", "cpu_contend"), ("loss_1", "memcg_thrash"),
    ("cpu_contend", "slow_disk"), ("memcg_thrash", "loss_5"), ("cpu_quota", "slow_disk"),
    ("rate_limit", "cpu_contend"), ("hugepages", "loss_5"), ("slow_disk", "hugepages"),
)  # fmt: skip
_SAME = (
    ("loss_5", "udp_rcvbuf"), ("cpu_quota", "cpu_contend"), ("cpu_contend", "fork_storm"),
    ("memcg_thrash", "hugepages"), ("udp_rcvbuf", "loss_5"), ("slow_disk", "read_burst"),
    ("slow_disk", "fio_libaio"), ("zram_swap", "hugepages"), ("hugepages", "oom_kill"),
)  # fmt: skip
# (name, second begins, second ends) in seconds from the onset of the first, which lasts 90 s
_OVERLAPS = {"inside": (25, 65), "over-its-end": (45, 135), "while-it-ends": (88, 140)}
_FIRST_S = 90


def _two(library: Library) -> Iterator[Planned]:
    for group, pairs in (("other", _OTHER), ("same", _SAME)):
        for number, (first, second) in enumerate(pairs):
            if library.fault(first) is None or library.fault(second) is None:
                continue
            names = list(_OVERLAPS)
            for overlap in {names[number % 2], names[2]}:
                name = f"{group}-{first}+{second}-{overlap}"
                make = partial(_two_timeline, library, name, (first, second), overlap, number)
                yield Planned("two", name, make)


def _two_timeline(
    library: Library, name: str, faults: tuple[str, str], overlap: str, number: int
) -> Timeline:
    below, above = (clip_beside(library, fault, *in_turn(number)) for fault in faults)
    start, stop = _OVERLAPS[overlap]
    spans = (
        Span(below, ONSET_S, _FIRST_S),
        Span(above, ONSET_S + start, stop - start, layered=True),
    )
    seconds = ONSET_S + max(_FIRST_S, stop) + TAIL_S
    return timeline("two", name, library.base(below), spans, seconds)


# -- the same fault again, and for how long

_REPEATED = ("cpu_contend", "read_burst", "loss_5", "memcg_thrash", "cpu_quota", "oom_kill")
_PAUSES = {"30s": 30, "2min": 120, "10min": 600}
_LENGTHS = {"20s": 20, "5min": 300, "1h": HOUR_S}


def _again(library: Library) -> Iterator[Planned]:
    for number, fault in enumerate(_REPEATED):
        if library.fault(fault) is None:
            continue
        for label, pause in _PAUSES.items():
            name = f"{fault}-after-{label}"
            yield Planned(
                "again", name, partial(_again_timeline, library, name, fault, pause, number)
            )
        for label, length in _LENGTHS.items():
            name = f"{fault}-for-{label}"
            yield Planned(
                "again", name, partial(_long_timeline, library, name, fault, length, number)
            )


def _again_timeline(library: Library, name: str, fault: str, pause: int, number: int) -> Timeline:
    clip = clip_beside(library, fault, *in_turn(number))
    second = ONSET_S + FAULT_S + pause
    spans = (Span(clip, ONSET_S, FAULT_S), Span(clip, second, FAULT_S))
    seconds = second + FAULT_S + TAIL_S
    return timeline("again", name, library.base(clip), spans, seconds)


def _long_timeline(library: Library, name: str, fault: str, length: int, number: int) -> Timeline:
    clip = clip_beside(library, fault, *in_turn(number))
    spans = (Span(clip, ONSET_S, length),)
    return timeline("again", name, library.base(clip), spans, ONSET_S + length + TAIL_S)


# -- the analyzer is replaced

_WHEN = {"before": -40, "onset": 2, "open": 60, "after": 150 + 40}
_EVENT_ONSET_S, _EVENT_FAULT_S = 260, 150
_EVENT_FAULTS = ("loss_5", "slow_disk", "cpu_contend", "hugepages")


def _analyzer(library: Library) -> Iterator[Planned]:
    faults = [fault for fault in _EVENT_FAULTS if library.fault(fault) is not None]
    number = 0
    for change in AnalyzerChange:
        for when in _WHEN:
            name = f"{change}-{when}"
            fault = faults[number % len(faults)]
            number += 1 if when != "after" else 2
            make = partial(_event_timeline, library, name, fault, change, when)
            yield Planned("analyzer", f"{name}-{fault}", make)


def _event_timeline(
    library: Library, name: str, fault: str, change: AnalyzerChange, when: str
) -> Timeline:
    clip = clip_beside(library, fault)
    spans = (Span(clip, _EVENT_ONSET_S, _EVENT_FAULT_S),)
    seconds = _EVENT_ONSET_S + _EVENT_FAULT_S + 150
    built = timeline("analyzer", f"{name}-{fault}", library.base(clip), spans, seconds)
    return replace(built, events=(AnalyzerEvent(change, _EVENT_ONSET_S + _WHEN[when]),))
