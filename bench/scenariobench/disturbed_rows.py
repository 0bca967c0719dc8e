"""Rows of the table that disturb the stream of the node: in a fault, and in healthy hours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from scenariobench import lasting
from scenariobench.clip import Clip
from scenariobench.library import Library
from scenariobench.row_parts import (
    ONSET_S,
    TAIL_S,
    Planned,
    clip_beside,
    lasting_span,
    seed_of,
    timeline,
)
from scenariobench.timeline import (
    AnalyzerChange,
    AnalyzerEvent,
    Disturbance,
    DisturbanceKind,
    Span,
    Timeline,
    Truth,
)
from scenariobench.truths import UNOBSERVED_S, devices_of

# -- disturbances of the stream while a fault is on

_DISTURBED_S = 200  # length of the fault
_DISTURBANCE_S = 60  # of it, when the disturbance begins
_AWAY_S = 300
_CLOCK_S = 7200
_DISK = ("storage.", "@loop0")


def disturbed(library: Library) -> Iterator[Planned]:
    """Yield a fault and what disturbs the stream while it lasts."""
    for fault in ("slow_disk", "loss_5"):
        if library.fault(fault) is None:
            continue
        for name, make in _DISTURBED.items():
            label = f"{name}-{fault}"
            yield Planned("disturbed", label, partial(make, library, label, fault))
    yield Planned("disturbed", "driver-hung-remap", partial(_driver_hung, library))


def _plain(library: Library, name: str, fault: str, seconds: int, after: int = 0) -> Timeline:
    clip = clip_beside(library, fault)
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
    base = library.base(clip_beside(library, fault, workload))
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


def healthy(library: Library) -> Iterator[Planned]:
    """Yield half an hour without a fault, with the same disturbances."""
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
