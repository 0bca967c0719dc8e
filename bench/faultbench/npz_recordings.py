"""Older npz recordings of a host with injected faults, as the messages a collector would send.

A directory of these holds ``runs.json`` (one object a run) and the npz files: ``first`` (C,)
and ``steps`` (T-1, C) of int64 counters as read every 100 ms, ``names`` (C,), ``time_ns`` (T,)
and ``gap``, the row after a jump in time (0 = none).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from faultbench import npz_columns
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Kind, Lane, Subsystem
from reveal_contract.wire import Message

RUNS = "runs.json"
TICKS = 10
TICK_US = 100_000
# what the cgroups of these recordings are called here
WORK_SUBJECT, FAULT_SUBJECT = "/reveal-work-job", "/reveal-fault-job"
_SUBJECTS = {"work": WORK_SUBJECT, "flt": FAULT_SUBJECT, "neighbour": "/neighbour"}
_OF_NOBODY = ("loss", "rate_limit", "hugepages", "backlog", "link_flap")  # no process at fault
_OF_THE_WORK = ("quota", "stalled")  # done to the workload's own cgroup
_ABSENT = np.iinfo(np.int64).min

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class HostFaultsError(ValueError):
    """The directory is not one of these; the text says why."""


@dataclass(frozen=True)
class Run:
    """One recording.  Times are seconds of its own 10 Hz grid, from its first row."""

    path: Path
    workload: str
    fault: str | None
    weak: bool
    subsystems: frozenset[Subsystem]
    subject: str | None
    warmup: float
    onset: float
    offset: float
    length: float
    neighbour_cores: float


def runs(directory: Path) -> list[Run]:
    """Every run of the directory; raises ``HostFaultsError`` when ``runs.json`` is unusable."""
    index = directory / RUNS
    try:
        rows = json.loads(index.read_text())
        return [_run(directory, row) for row in rows]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise HostFaultsError(f"{index} is not an index of recorded runs: {error}") from None


def _run(directory: Path, row: dict[str, Any]) -> Run:
    fault, length = row["fault"], float(row["length_s"])
    return Run(
        path=directory / row["file"],
        workload=row["workload"],
        fault=fault,
        weak=bool(row.get("weak", False)),
        subsystems=frozenset(Subsystem(name) for name in row.get("subsystems", ())),
        subject=_subject(fault),
        warmup=float(row.get("warmup_s", 0)),
        onset=float(row.get("onset_s", length)),
        offset=float(row.get("offset_s", length)),
        length=length,
        neighbour_cores=float(row["other_cores"]),
    )


def _subject(fault: str | None) -> str | None:
    if fault is None or fault.startswith(_OF_NOBODY):
        return None
    return WORK_SUBJECT if fault.startswith(_OF_THE_WORK) else FAULT_SUBJECT


def load(path: Path) -> Iterator[tuple[Message, ChannelTable]]:
    """The slices of one npz file, in order.  The one that holds the jump in time is left out."""
    counted, names, times, gap = _read(path)
    fed = npz_columns.channels(_used(names, counted), _SUBJECTS)
    table = ChannelTable(_of_lanes(fed, {Lane.FAST}), _of_lanes(fed, {Lane.SLOW, Lane.RARE}))
    fast, slow = (_Columns(counted, part, fed) for part in (table.fast, table.slow))
    boot = hashlib.blake2b(path.stem.encode(), digest_size=16).digest()
    for number in range((len(counted) - 1) // TICKS):
        row = number * TICKS + 1
        if gap and row <= gap < row + TICKS:
            continue
        values, missing = fast.ticks(row)
        slow_values, slow_missing = slow.slice(row)
        message = Message(
            node=path.stem, boot=boot, sequence=number, start_ns=int(times[row]), tick_us=TICK_US,
            table=table.key, fast=values, slow=slow_values, fast_missing=missing,
            slow_missing=slow_missing,
        )  # fmt: skip
        yield message, table


def _read(path: Path) -> tuple[Ints, list[str], Ints, int]:
    try:
        with np.load(path) as file:
            first, steps = file["first"], file["steps"]
            counted = np.concatenate([first[None], first + np.cumsum(steps, axis=0)])
            return counted, [str(name) for name in file["names"]], file["time_ns"], int(file["gap"])
    except (OSError, ValueError, KeyError) as error:
        raise HostFaultsError(f"{path} is not a recorded run: {error}") from None


def _used(names: list[str], counted: Ints) -> list[str]:
    """The names, blank for a disk or NIC that never did anything: a collector shows no such."""
    busy = {_device(name) for name, column in zip(names, counted.T, strict=True) if column.any()}
    return [name if _device(name) in busy | {""} else "" for name in names]


def _device(name: str) -> str:
    kind, _, rest = name.partition(".")
    return f"{kind}.{rest.split('.')[0]}" if kind in ("disk", "net") else ""


def _of_lanes(fed: dict[Channel, list[int]], lanes: set[Lane]) -> tuple[Channel, ...]:
    return tuple(channel for channel in fed if channel.lane in lanes)


class _Columns:
    """The channels of one lane: levels or differences of sums of columns."""

    def __init__(
        self, counted: Ints, channels: tuple[Channel, ...], fed: dict[Channel, list[int]]
    ) -> None:
        absent = counted == _ABSENT
        rows = len(counted)
        self._levels = np.empty((rows, len(channels)), np.int64)
        self._absent = np.empty((rows, len(channels)), np.bool_)
        for index, channel in enumerate(channels):
            columns = fed[channel]
            self._absent[:, index] = absent[:, columns].any(axis=1)
            self._levels[:, index] = np.where(absent[:, columns], 0, counted[:, columns]).sum(
                axis=1
            )
        self._gauge = np.array([channel.kind is not Kind.COUNTER for channel in channels], np.bool_)

    def ticks(self, row: int) -> tuple[Ints, Bools]:
        """Rows ``at`` .. ``at + 9``: (10, channels) values and what is missing of them."""
        return self._differences(
            self._levels[row - 1 : row + TICKS], self._absent[row - 1 : row + TICKS]
        )

    def slice(self, row: int) -> tuple[Ints, Bools]:
        """The same as one value a channel: last level, difference over the second."""
        ends = [row - 1, row + TICKS - 1]
        values, missing = self._differences(self._levels[ends], self._absent[ends])
        return values[0], missing[0]

    def _differences(self, levels: Ints, absent: Bools) -> tuple[Ints, Bools]:
        steps = np.diff(levels, axis=0)
        # a counter that falls was reset: one sample is missing
        unusable = absent[1:] | absent[:-1] | (steps < 0)
        values = np.where(self._gauge, levels[1:], steps)
        return values, np.where(self._gauge, absent[1:], unusable)
