"""From recordings of the fault bench to clips: a healthy base and one clip for each fault."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from faultbench.npz_recordings import FAULT_SUBJECT
from faultbench.sessions import Case, Session, Slice, sessions
from reveal_contract.channels import Channel, ChannelTable
from scenariobench import clip_file
from scenariobench.clip import Clip, Frame, RecordedFault, clip_of, table_of

BASE, HEALTHY = "base", "healthy"
_LEAD_S, _REST_S = 6, 12  # of a case, beside the fault
_HEALTHY_S = 300  # of one clip of a healthy recording
# metrics that only describe the collector, or would take much of the room and decide nothing
_LEFT_OUT = ("own.",)
_KNOWN_SUBJECTS = ("/reveal-", "/neighbour")


def collect(source: Path, target: Path) -> list[Path]:
    """Write the clips of a directory of recordings; those that are there already stay."""
    written = []
    for session in sessions(source):
        names = set(_names(session))
        if names and all((target / (name + clip_file.SUFFIX)).exists() for name in names):
            continue
        written += [
            clip_file.write(clip, target)
            for clip in clips_of(session)
            if not (target / (clip.name + clip_file.SUFFIX)).exists()
        ]
    return written


def _names(session: Session) -> Iterator[str]:
    if session.cases:
        yield f"{session.workload}-{BASE}-{session.name}"
    for case in session.cases:
        yield f"{session.name}-{case.fault}"


def clips_of(session: Session) -> Iterator[Clip]:
    """Return the healthy seconds at the start of a session, then each of its cases."""
    slices = [each for each in session.read() if len(each.message.fast)]
    ticks = max(len(each.message.fast) for each in slices)
    slices = [each for each in slices if len(each.message.fast) == ticks][1:]
    if not session.cases:
        yield from _healthy(session, slices)
        return
    warm = [each for each in slices if each.end <= session.warmup]
    yield _clip(f"{session.workload}-{BASE}-{session.name}", session, warm)
    for case in session.cases:
        clip = _case(session, case, slices)
        if clip is not None:
            yield clip


def _healthy(session: Session, slices: Sequence[Slice]) -> Iterator[Clip]:
    for number, start in enumerate(range(0, len(slices), _HEALTHY_S)):
        part = slices[start : start + _HEALTHY_S]
        if len(part) >= 30:
            yield _clip(f"{session.workload}-{HEALTHY}-{session.name}-{number}", session, part)


def _case(session: Session, case: Case, slices: Sequence[Slice]) -> Clip | None:
    """Return the seconds around a fault, None where too few were recorded."""
    start, stop = max(case.begin, case.onset - _LEAD_S), min(case.end, case.offset + _REST_S)
    part = [each for each in slices if start < each.end - 1 and each.end <= stop]
    if not part or part[0].end > case.onset or part[-1].end < case.offset:
        return None
    subject = case.subject
    if subject == FAULT_SUBJECT:  # one timeline may hold several
        subject = f"/reveal-fault-{case.fault}"
    fault = RecordedFault(
        case.fault, case.kind, case.weak, case.subsystems, subject,
        _position(part, case.onset), _position(part, case.offset),
    )  # fmt: skip
    clip = _clip(f"{session.name}-{case.fault}", session, part, fault)
    return _renamed(clip, FAULT_SUBJECT, f"/reveal-fault-{case.fault}")


def _position(part: Sequence[Slice], moment: float) -> float:
    """Return a time of the session as seconds from the start of the clip."""
    index = next(index for index, each in enumerate(part) if each.end > moment or each is part[-1])
    return index + min(max(moment - (part[index].end - 1.0), 0.0), 0.999)


def _clip(
    name: str, session: Session, part: Sequence[Slice], fault: RecordedFault | None = None
) -> Clip:
    frames = [_frame(each) for each in part]
    return clip_of(name, session.workload, frames, part[0].message.tick_us, fault)


def _frame(recorded: Slice) -> Frame:
    message, table = recorded.message, recorded.table
    fast, slow = _kept(table.fast), _kept(table.slow)
    kept = table_of(
        tuple(_anonymous(table.fast[i]) for i in fast),
        tuple(_anonymous(table.slow[i]) for i in slow),
    )
    return Frame(
        kept, message.fast[:, fast], message.slow[slow],
        message.fast_missing[:, fast], message.slow_missing[slow],
    )  # fmt: skip


def _kept(channels: Sequence[Channel]) -> list[int]:
    return [
        index for index, channel in enumerate(channels) if not channel.metric.startswith(_LEFT_OUT)
    ]


def _anonymous(channel: Channel) -> Channel:
    """Return the channel of a process that is no part of the bench under a neutral name."""
    name = channel.instance
    if ".subject." not in channel.metric or not name or name.startswith(_KNOWN_SUBJECTS):
        return channel
    number = zlib.crc32(name.encode()) % 10_000
    neutral = f"/other/service-{number}" if name.startswith("/") else f"pgrp:other[{number}]"
    return replace(channel, instance=neutral)


def _renamed(clip: Clip, old: str, new: str) -> Clip:
    """Return the clip with another name of one subject."""

    def name(channel: Channel) -> Channel:
        return replace(channel, instance=new) if channel.instance == old else channel

    table = ChannelTable(tuple(map(name, clip.channels.fast)), tuple(map(name, clip.channels.slow)))
    return replace(clip, channels=table)


def trimmed(clip: Clip, keep: Sequence[str]) -> Clip:
    """Return the clip with only the channels whose metric starts with one of ``keep``."""
    start = tuple(keep)
    fast = [i for i, channel in enumerate(clip.channels.fast) if channel.metric.startswith(start)]
    slow = [i for i, channel in enumerate(clip.channels.slow) if channel.metric.startswith(start)]
    width = len(clip.channels.fast)
    return replace(
        clip,
        channels=table_of(
            tuple(clip.channels.fast[i] for i in fast), tuple(clip.channels.slow[i] for i in slow)
        ),
        fast=clip.fast[:, :, fast], slow=clip.slow[:, slow],
        fast_missing=clip.fast_missing[:, :, fast], slow_missing=clip.slow_missing[:, slow],
        present=np.concatenate(
            [clip.present[:, fast], clip.present[:, [width + i for i in slow]]], axis=1
        ),
    )  # fmt: skip
