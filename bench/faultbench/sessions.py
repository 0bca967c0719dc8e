"""What the bench judges: sessions (one stretch of recorded slices) and the cases in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from faultbench import npz_recordings
from faultbench.recording_index import CaseRow, Index, read_index
from faultbench.step_loss import Steps, lost, steps_of
from reveal_contract.channels import ChannelTable
from reveal_contract.metric import Subsystem
from reveal_contract.recording import RecordingReader
from reveal_contract.time_units import NS_PER_SECOND
from reveal_contract.wire import Message, decode, gauges

WARMUP_S = 60.0
GRACE_S = 1.0  # a finding may come this long after the fault has ended
SETTLE_S = 12.0  # what is found this long after a fault is neither right nor false


@dataclass(frozen=True)
class Slice:
    """A second of a session; ``end`` is the session's clock, in seconds, when it closed."""

    end: float
    message: Message
    table: ChannelTable


@dataclass(frozen=True)
class Case:
    """One fault in a session.  All times are seconds of the session's clock.

    ``begin`` and ``end`` bound the stretch that belongs to the case, quiet seconds included.
    ``lost`` is the share of its pace that the job lost, where the job wrote down its steps.
    """

    fault: str
    kind: str
    weak: bool
    subsystems: frozenset[Subsystem]
    subject: str | None
    neighbour_cores: float
    begin: float
    onset: float
    offset: float
    end: float
    lost: float | None = None


@dataclass(frozen=True)
class Session:
    """One recording: a warm-up without faults, then cases; without cases it is healthy.

    ``read`` gives its slices; it is picklable, so that sessions can be judged in parallel.
    """

    name: str
    path: Path
    workload: str
    warmup: float
    neighbour_cores: float
    cases: tuple[Case, ...]
    read: Callable[[], Iterator[Slice]]

    def of(self, faults: set[str]) -> Session:
        """The same session with only these faults' cases."""
        return replace(self, cases=tuple(case for case in self.cases if case.fault in faults))


class NothingToJudgeError(ValueError):
    """The directory holds no recording of the bench; the text says what was looked for."""


def sessions(directory: Path) -> list[Session]:
    """The sessions of a directory made by ``--record`` or of older npz recordings."""
    if (directory / npz_recordings.RUNS).exists():
        return [_of_run(run) for run in npz_recordings.runs(directory)]
    indexes = [read_index(path) for path in sorted(directory.glob("*.session.json"))]
    if not indexes:
        raise NothingToJudgeError(
            f"{directory} holds neither *.session.json nor {npz_recordings.RUNS}: nothing to judge"
        )
    return [_of_index(directory, index) for index in indexes]


def _of_run(run: npz_recordings.Run) -> Session:
    case = Case(
        run.fault or "", run.fault or "", run.weak, run.subsystems, run.subject,
        run.neighbour_cores, run.warmup, run.onset, run.offset, run.length,
    )  # fmt: skip
    return Session(
        run.path.stem, run.path, run.workload, WARMUP_S, run.neighbour_cores,
        (case,) if run.fault else (), partial(_read_run, run.path),
    )  # fmt: skip


def _read_run(path: Path) -> Iterator[Slice]:
    for message, table in npz_recordings.load(path):
        yield Slice(message.sequence + 1.0, message, table)


def _of_index(directory: Path, index: Index) -> Session:
    path = directory / index.recording
    steps = steps_of(directory, index.workload)
    cases = tuple(_of_row(index, row, steps) for row in index.cases)
    return Session(
        path.stem, path, index.workload, index.clock(index.warm_ns), index.neighbour_cores, cases,
        partial(_read_recording, path, index.start_ns),
    )  # fmt: skip


def _of_row(index: Index, row: CaseRow, steps: Steps | None) -> Case:
    times = (row.begin_ns, row.onset_ns, row.offset_ns, row.end_ns)
    begin, onset, offset, end = map(index.clock, times)
    return Case(
        row.fault, row.kind, row.weak, frozenset(map(Subsystem, row.subsystems)), row.subject,
        row.neighbour_cores, begin, onset, offset, end, lost(steps, row) if steps else None,
    )  # fmt: skip


def _read_recording(path: Path, start_ns: int) -> Iterator[Slice]:
    levels: dict[bytes, NDArray[np.bool_]] = {}
    for record in RecordingReader(path):
        if record.table is None:
            continue
        table = record.table
        if table.key not in levels:
            levels[table.key] = gauges(table)
        message = decode(record.data, levels[table.key])
        end_ns = message.start_ns + len(message.fast) * message.tick_us * 1000
        yield Slice((end_ns - start_ns) / NS_PER_SECOND, message, table)
