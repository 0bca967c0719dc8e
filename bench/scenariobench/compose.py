"""From a timeline to the slices of its node, and the true values of the seconds in them."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np

from reveal_contract import wire
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.time_units import NS_PER_SECOND
from scenariobench.clip import Bools, Clip, Frame, table_of
from scenariobench.splice import (
    Layer,
    Levels,
    Shift,
    bouncing,
    calm_seconds,
    fault_seconds,
    quiet_levels,
)
from scenariobench.timeline import Disturbance, DisturbanceKind, Span, Timeline

_RUN_S = (20, 90)  # seconds that one healthy clip is played before the next
_SHORT_S = 20


class TimedSlice(NamedTuple):
    """One slice as it is sent; ``second`` is its place on the timeline."""

    second: int
    message: wire.Message
    table: ChannelTable
    frame: Frame


@dataclass
class _Playing:
    """A span with the order of its seconds."""

    span: Span
    order: list[int]
    layer: Layer | None
    shift: Shift | None

    def second(self, now: int) -> int | None:
        """The second of the clip that is played now, if it is."""
        position = now - self.span.start
        return self.order[position] if 0 <= position < len(self.order) else None


def slices(timeline: Timeline, start_ns: int) -> Iterator[TimedSlice]:
    """Return the slices of a timeline in order, without those that never arrive.

    ``start_ns`` is the wall clock of the node at the first second.
    """
    rng = random.Random(timeline.seed)
    healthy = _healthy(timeline.base, rng)
    playing = _playing(timeline, rng)
    boot, booted = _boot(timeline, 0), 0
    sequence = -1
    for second in range(timeline.seconds):
        frame = _frame(healthy, playing, second)
        sequence += 1
        away = next((d for d in _of(timeline, DisturbanceKind.AWAY) if d.covers(second)), None)
        if away is not None or any(d.covers(second) for d in _of(timeline, DisturbanceKind.GAP)):
            if away is not None and second == away.stop - 1:
                booted, sequence = booted + 1, -1
                boot = _boot(timeline, booted)
            continue
        frame = _disturbed(timeline, frame, second)
        step_s = sum(d.step_s for d in _of(timeline, DisturbanceKind.CLOCK) if d.covers(second))
        message = wire.Message(
            node=timeline.node, boot=boot, sequence=sequence,
            start_ns=start_ns + (second + step_s) * NS_PER_SECOND,
            tick_us=timeline.base[0].tick_us, table=frame.table.key, fast=frame.fast,
            slow=frame.slow, fast_missing=frame.fast_missing, slow_missing=frame.slow_missing,
        )  # fmt: skip
        yield TimedSlice(second, message, frame.table, frame)


def _of(timeline: Timeline, kind: DisturbanceKind) -> list[Disturbance]:
    return [each for each in timeline.disturbances if each.kind is kind]


def _boot(timeline: Timeline, number: int) -> bytes:
    seed = f"{timeline.node}/{number}".encode()
    return hashlib.blake2b(seed, digest_size=16).digest()


def _healthy(base: tuple[Clip, ...], rng: random.Random) -> Iterator[Frame]:
    """Yield healthy seconds for ever: the first clip from its start, then runs of all of them."""
    levels = [quiet_levels(clip) for clip in base]
    shifts = [None, *(Shift(own, levels[0]) for own in levels[1:])]
    order: Iterable[int] = range(len(base[0]))
    number = 0
    while True:
        shift = shifts[number]
        for second in order:
            frame = base[number].frame(second)
            yield frame if shift is None else shift.apply(frame)
        (number,) = rng.choices(range(len(base)), [len(clip) for clip in base])
        order = _run(base[number], rng)


def _run(clip: Clip, rng: random.Random) -> Iterable[int]:
    """Return the order of some seconds of a clip; a short one is played once, from its start."""
    if len(clip) <= _SHORT_S:
        return range(len(clip))
    start = rng.randrange(len(clip))
    return islice(bouncing(rng, 0, len(clip), start, calm_seconds(clip)), rng.randint(*_RUN_S))


def _playing(timeline: Timeline, rng: random.Random) -> list[_Playing]:
    target = quiet_levels(timeline.base[0])
    return [
        _Playing(
            span,
            fault_seconds(span.clip, span.seconds, rng),
            Layer(span.clip) if span.layered else None,
            None if span.layered else _shift(span.clip, target),
        )
        for span in timeline.spans
    ]


def _shift(clip: Clip, target: Levels) -> Shift:
    return Shift(quiet_levels(clip), target)


def _frame(healthy: Iterator[Frame], playing: list[_Playing], now: int) -> Frame:
    frame: Frame | None = None
    for each in playing:
        second = each.second(now)
        if second is not None and each.layer is None:
            frame = each.span.clip.frame(second)
            frame = each.shift.apply(frame) if each.shift else frame
    if frame is None:
        frame = next(healthy)
    for each in playing:
        second = each.second(now)
        if second is not None and each.layer is not None:
            frame = each.layer.add(frame, second)
        elif each.layer is not None and each.span.clip.workload in ALWAYS_THERE:
            frame = each.layer.add(frame, now % max(1, _quiet_seconds(each.span.clip)))
    return frame


# layers whose channels exist without their fault: a pod that is not throttled yet, a sound GPU
ALWAYS_THERE = frozenset({"gpu", "pod"})


def _quiet_seconds(clip: Clip) -> int:
    return clip.fault.first if clip.fault else len(clip)


def _disturbed(timeline: Timeline, frame: Frame, second: int) -> Frame:
    for each in timeline.disturbances:
        if each.covers(second) and each.kind is DisturbanceKind.MISSING:
            fast, slow = _matches(frame.table, each)
            frame = frame._replace(
                fast_missing=frame.fast_missing | fast, slow_missing=frame.slow_missing | slow
            )
        elif each.covers(second) and each.kind is DisturbanceKind.GONE:
            fast, slow = _matches(frame.table, each)
            frame = _without(frame, fast, slow)
    return frame


def _matches(table: ChannelTable, disturbance: Disturbance) -> tuple[Bools, Bools]:
    fast, slow = (
        np.array([_is_meant(channel, disturbance.channels) for channel in channels], np.bool_)
        for channels in (table.fast, table.slow)
    )
    return fast, slow


def _is_meant(channel: Channel, patterns: tuple[str, ...]) -> bool:
    return any(
        channel.instance == pattern[1:]
        if pattern.startswith("@")
        else channel.label.startswith(pattern)
        for pattern in patterns
    )


def _without(frame: Frame, fast: Bools, slow: Bools) -> Frame:
    table = table_of(
        tuple(c for c, gone in zip(frame.table.fast, fast, strict=True) if not gone),
        tuple(c for c, gone in zip(frame.table.slow, slow, strict=True) if not gone),
    )
    return Frame(
        table, frame.fast[:, ~fast], frame.slow[~slow], frame.fast_missing[:, ~fast],
        frame.slow_missing[~slow],
    )  # fmt: skip
