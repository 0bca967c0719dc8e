"""The rows of the table: which timelines there are.

A timeline is built from its name and the recorded clips alone; its seed is a hash of its label.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from reveal_contract.metric import Subsystem
from scenariobench import lasting
from scenariobench.clip import Clip
from scenariobench.library import Library
from scenariobench.timeline import (
    AnalyzerChange,
    AnalyzerEvent,
    Disturbance,
    DisturbanceKind,
    Span,
    Timeline,
    Truth,
)
from scenariobench.truths import UNOBSERVED_S, devices_of, truth_of

ONSET_S = 120  # healthy seconds before the first fault
FAULT_S = 40
TAIL_S = 130  # seconds after the last fault, so that it can resolve
HOUR_S = 3600
_ORDER = ("train", "server", "loader")


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
    return zlib.crc32(label.encode())


def planned(library: Library) -> list[Planned]:
    """Return every timeline that the recorded clips allow."""
    return [
        *_lasting(library), *_two(library), *_again(library), *_analyzer(library),
        *_disturbed(library), *_healthy(library),
    ]  # fmt: skip


def timeline(
    row: str, name: str, base: tuple[Clip, ...], spans: tuple[Span, ...], seconds: int
) -> Timeline:
    """Return a timeline with one truth for each span."""
    truths = tuple(truth_of(span, number, base[0]) for number, span in enumerate(spans))
    return Timeline(row, name, seed_of(f"{row}/{name}"), seconds, base, spans, truths)


# -- a lasting certain cause, and another fault after 5 and 60 min of it

_LASTING = ("throttled", "remap", "pressure")


def _lasting(library: Library) -> Iterator[Planned]:
    number = 0
    for workload, fault in library.faults():
        kinds = [kind for kind in _LASTING if _can_last(library, kind, fault)]
        if not kinds:
            continue
        kind = kinds[number % len(kinds)]
        number += 1
        make = partial(_lasting_timeline, library, kind, workload, fault)
        yield Planned("lasting", f"{kind}-{workload}-{fault}", make)


def _can_last(library: Library, kind: str, fault: str) -> bool:
    clip = library.fault(fault)
    if clip is None or clip.fault is None:
        return False
    if kind == "throttled":
        return _quota(library) is not None
    # a second fault of the CPU cannot be distinguished from the pressure itself
    return kind == "remap" or Subsystem.CPU not in clip.fault.subsystems


def _quota(library: Library) -> Clip | None:
    for name in ("cpu_quota", "quota_half"):
        if (clip := library.fault(name, *_ORDER)) is not None:
            return clip
    return None


def lasting_span(library: Library, kind: str, start: int, seconds: int, workload: str) -> Span:
    """Return a lasting cause as a layer."""
    if kind == "remap":
        clip = lasting.pending_row_remap()
    elif kind == "throttled":
        quota = _quota(library)
        assert quota is not None
        clip = lasting.throttled_pod(quota)
    else:
        found = library.fault("cpu_contend", workload, *_ORDER)
        assert found is not None
        clip = found
    return Span(clip, start, seconds, layered=True)


def _lasting_timeline(library: Library, kind: str, workload: str, fault: str) -> Timeline:
    clip = _clip(library, fault, workload)
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


def _clip(library: Library, fault: str, *workloads: str) -> Clip:
    clip = library.fault(fault, *(workloads or _ORDER))
    assert clip is not None
    return clip


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
                make = partial(_two_timeline, library, name, first, second, overlap)
                yield Planned("two", name, make)


def _two_timeline(library: Library, name: str, first: str, second: str, overlap: str) -> Timeline:
    below, above = _clip(library, first), _clip(library, second)
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
    for fault in _REPEATED:
        if library.fault(fault) is None:
            continue
        for label, pause in _PAUSES.items():
            name = f"{fault}-after-{label}"
            yield Planned("again", name, partial(_again_timeline, library, name, fault, pause))
        for label, length in _LENGTHS.items():
            name = f"{fault}-for-{label}"
            yield Planned("again", name, partial(_long_timeline, library, name, fault, length))


def _again_timeline(library: Library, name: str, fault: str, pause: int) -> Timeline:
    clip = _clip(library, fault)
    second = ONSET_S + FAULT_S + pause
    spans = (Span(clip, ONSET_S, FAULT_S), Span(clip, second, FAULT_S))
    seconds = second + FAULT_S + TAIL_S
    return timeline("again", name, library.base(clip), spans, seconds)


def _long_timeline(library: Library, name: str, fault: str, length: int) -> Timeline:
    clip = _clip(library, fault)
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
    clip = _clip(library, fault)
    spans = (Span(clip, _EVENT_ONSET_S, _EVENT_FAULT_S),)
    seconds = _EVENT_ONSET_S + _EVENT_FAULT_S + 150
    built = timeline("analyzer", f"{name}-{fault}", library.base(clip), spans, seconds)
    return replace(built, events=(AnalyzerEvent(change, _EVENT_ONSET_S + _WHEN[when]),))


# -- disturbances of the stream while a fault is on

_DISTURBED_S = 200  # length of the fault
_DISTURBANCE_S = 60  # of it, when the disturbance begins
_AWAY_S = 300
_CLOCK_S = 7200
_DISK = ("storage.", "@loop0")


def _disturbed(library: Library) -> Iterator[Planned]:
    for fault in ("slow_disk", "loss_5"):
        if library.fault(fault) is None:
            continue
        for name, make in _DISTURBED.items():
            label = f"{name}-{fault}"
            yield Planned("disturbed", label, partial(make, library, label, fault))
    yield Planned("disturbed", "driver-hung-remap", partial(_driver_hung, library))


def _plain(library: Library, name: str, fault: str, seconds: int, after: int = 0) -> Timeline:
    clip = _clip(library, fault)
    spans = (Span(clip, ONSET_S, seconds),)
    whole = ONSET_S + seconds + TAIL_S + after
    return timeline("disturbed", name, library.base(clip), spans, whole)


def _with(
    built: Timeline, kind: DisturbanceKind, seconds: int = 0, *, truth: Truth | None = None,
    channels: tuple[str, ...] = (), step_s: int = 0,
) -> Timeline:  # fmt: skip
    disturbance = Disturbance(kind, ONSET_S + _DISTURBANCE_S, seconds, channels, step_s)
    truths = built.truths if truth is None else (truth,)
    return replace(built, disturbances=(disturbance,), truths=truths)


def _unobservable(built: Timeline, within: float, *, unobserved: bool = True) -> Truth:
    """Return the truth of a fault that cannot be observed from the disturbance on."""
    end = float(ONSET_S + _DISTURBANCE_S)
    return replace(built.truths[0], end=end, unobserved=unobserved, resolve_within=within)


def _metric_gone(library: Library, name: str, fault: str) -> Timeline:
    built = _plain(library, name, fault, _DISTURBED_S, 60)
    channels = (*_DISK, "cpu.iowait", "memory.") if fault == "slow_disk" else ("network.",)
    truth = _unobservable(built, UNOBSERVED_S)
    return _with(built, DisturbanceKind.MISSING, truth=truth, channels=channels)


def _device_gone(library: Library, name: str, fault: str) -> Timeline:
    """The device leaves the table for good, and the fault ends with it."""
    built = _plain(library, name, fault, _DISTURBANCE_S, 60)
    devices = {f"@{name}" for name in devices_of(built.spans[0].clip.channels)}
    truth = replace(built.truths[0], resolve_within=UNOBSERVED_S)
    return _with(built, DisturbanceKind.GONE, truth=truth, channels=tuple(sorted(devices)))


def _gap(
    library: Library, name: str, fault: str, seconds: int, reports: tuple[int, ...]
) -> Timeline:
    built = _plain(library, name, fault, _DISTURBED_S)
    truth = replace(built.truths[0], reports=reports)
    return _with(built, DisturbanceKind.GAP, seconds, truth=truth)


def _clock(library: Library, name: str, fault: str, step_s: int) -> Timeline:
    built = _plain(library, name, fault, _DISTURBED_S)
    return _with(built, DisturbanceKind.CLOCK, step_s=step_s)


def _away_healthy(library: Library, name: str, fault: str) -> Timeline:
    """The node boots again without the fault."""
    built = _plain(library, name, fault, _DISTURBANCE_S, _AWAY_S)
    truth = _unobservable(built, _AWAY_S + 60.0)
    return _with(built, DisturbanceKind.AWAY, _AWAY_S, truth=truth)


def _away_faulty(library: Library, name: str, fault: str) -> Timeline:
    """The node boots again with the fault."""
    built = _plain(library, name, fault, _DISTURBED_S + _AWAY_S)
    truth = replace(built.truths[0], reports=(1, 2))
    return _with(built, DisturbanceKind.AWAY, _AWAY_S, truth=truth)


_DISTURBED: dict[str, Callable[[Library, str, str], Timeline]] = {
    "metric-gone": _metric_gone,
    "device-gone": _device_gone,
    "gap-20s": partial(_gap, seconds=20, reports=(1,)),
    "gap-90s": partial(_gap, seconds=90, reports=(1, 2)),
    "clock-forward": partial(_clock, step_s=_CLOCK_S),
    "clock-back": partial(_clock, step_s=-_CLOCK_S),
    "node-back-healthy": _away_healthy,
    "node-back-faulty": _away_faulty,
}


def _driver_hung(library: Library) -> Timeline:
    workload, fault = library.faults()[0]
    base = library.base(_clip(library, fault, workload))
    spans = (lasting_span(library, "remap", ONSET_S, _DISTURBED_S, workload),)
    seconds = ONSET_S + _DISTURBED_S + TAIL_S + 60
    built = timeline("disturbed", "driver-hung-remap", base, spans, seconds)
    truth = _unobservable(built, UNOBSERVED_S)
    return _with(built, DisturbanceKind.MISSING, truth=truth, channels=("gpu.",))


# -- healthy hours with the same disturbances

_HEALTHY_S = 1800
_MIDDLE_S = 900
_QUIET_CHANGES: dict[str, tuple[Disturbance, ...]] = {
    "undisturbed": (),
    "metric-gone": (Disturbance(DisturbanceKind.MISSING, _MIDDLE_S, 0, _DISK),),
    "metric-away": (Disturbance(DisturbanceKind.MISSING, _MIDDLE_S, 120, ("network.", "memory.")),),
    "device-gone": (Disturbance(DisturbanceKind.GONE, _MIDDLE_S, 0, ("storage.disk.",)),),
    "driver-hung": (Disturbance(DisturbanceKind.MISSING, _MIDDLE_S, 0, ("gpu.",)),),
    "gap-20s": (Disturbance(DisturbanceKind.GAP, _MIDDLE_S, 20),),
    "gap-90s": (Disturbance(DisturbanceKind.GAP, _MIDDLE_S, 90),),
    "clock-forward": (Disturbance(DisturbanceKind.CLOCK, _MIDDLE_S, step_s=_CLOCK_S),),
    "clock-back": (Disturbance(DisturbanceKind.CLOCK, _MIDDLE_S, step_s=-_CLOCK_S),),
    "node-back": (Disturbance(DisturbanceKind.AWAY, _MIDDLE_S, _AWAY_S),),
}


def _healthy(library: Library) -> Iterator[Planned]:
    recordings = library.healthy()
    if not recordings:
        return
    number = 0
    for name, disturbances in _QUIET_CHANGES.items():
        label = f"{name}-{recordings[number % len(recordings)][0]}"
        clips = recordings[number % len(recordings)][1]
        number += 1
        make = partial(_healthy_timeline, label, clips, disturbances)
        yield Planned("healthy", label, make)
    for change in AnalyzerChange:
        label = f"{change}-{recordings[number % len(recordings)][0]}"
        clips = recordings[number % len(recordings)][1]
        number += 1
        event = (AnalyzerEvent(change, _MIDDLE_S),)
        yield Planned("healthy", label, partial(_healthy_timeline, label, clips, (), event))


def _healthy_timeline(
    name: str, clips: tuple[Clip, ...], disturbances: tuple[Disturbance, ...],
    events: tuple[AnalyzerEvent, ...] = (),
) -> Timeline:  # fmt: skip
    with_gpu = name.startswith("driver-hung")
    built = Timeline("healthy", name, seed_of(f"healthy/{name}"), _HEALTHY_S, clips)
    # beyond the end: the sound GPU is there, its fault never comes
    spans = (Span(lasting.pending_row_remap(), _HEALTHY_S + 60, 10, layered=True),)
    return replace(built, disturbances=disturbances, events=events, spans=spans if with_gpu else ())
