"""Recordings of repeated runs as traces of 100 ms over the same metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from faultbench.recorder import CYCLE_S, SCHEDULE, due
from reveal_analyzer.selection.resampler import MetricInstance, Resampler
from reveal_cli.recordings import Slices

Floats = NDArray[np.float64]
SAMPLE_NS = 100_000_000
_STARTING_S, _ENDING_S = 6.0, 2.0


class TracesError(ValueError):
    """These recordings cannot be compared; the text says why."""


@dataclass(frozen=True)
class Trace:
    """One run: ``values`` (samples, items) in base units, NaN where nothing was read."""

    workload: str
    number: int
    values: Floats


@dataclass(frozen=True)
class Traces:
    """All runs over the items that all of them have, cut to the length of the shortest."""

    items: tuple[MetricInstance, ...]
    runs: tuple[Trace, ...]

    @property
    def workloads(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(run.workload for run in self.runs))

    def of(self, workload: str) -> tuple[Trace, ...]:
        return tuple(run for run in self.runs if run.workload == workload)

    @property
    def samples(self) -> int:
        return len(self.runs[0].values)


def load(recordings: Sequence[tuple[str, int, Path]]) -> Traces:
    """Workload, number and file of each run; raises ``TracesError``."""
    read = [(workload, number, *_read(path)) for workload, number, path in recordings]
    if not read:
        raise TracesError("there are no recordings to compare")
    known = set.intersection(*({item.label for item in items} for _, _, items, _ in read))
    common = [item for item in read[0][2] if item.label in known]
    shortest = min(len(values) for *_, values in read)
    runs = []
    for workload, number, items, values in read:
        runs.append(Trace(workload, number, values[:shortest, _positions(items, common)]))
    return Traces(tuple(common), tuple(runs))


def cycles(recording: Path, start_ns: int, least: int = 2) -> Traces:
    """The phases of a healthy session of the fault bench, whose jobs come and go in a cycle.

    Each set of jobs is a workload, each cycle in which it was seen whole a run; raises
    ``TracesError`` where there are fewer than ``least`` cycles.
    """
    items, times, values = _samples(recording)
    spans = phases()
    size = int(min(end - begin for begin, end in spans.values()) * 1e9 / SAMPLE_NS)
    runs = []
    for number in range(int((times[-1] - start_ns) / 1e9 / CYCLE_S) + 1):
        for name, (begin, _) in spans.items():
            start = start_ns + round((number * CYCLE_S + begin) * 1e9)
            row = int(np.searchsorted(times, start))
            last = row + size - 1
            # what was not recorded from its first to its last sample is no run
            if last < len(times) and times[last] - start < (size + 1) * SAMPLE_NS:
                runs.append(Trace(name, number + 1, values[row : row + size]))
    whole = [n for n in {r.number for r in runs} if sum(r.number == n for r in runs) == len(spans)]
    if len(whole) < least:
        raise TracesError(f"{recording} holds {len(whole)} whole cycles: {least} are needed")
    return Traces(items, tuple(run for run in runs if run.number in whole))


def phases() -> dict[str, tuple[float, float]]:
    """When each set of jobs of the cycle works, without the seconds in which jobs start or end."""
    edges = sorted({0.0, CYCLE_S, *(edge for _, *those in SCHEDULE for edge in those)})
    return {
        "+".join(sorted(due(begin))): (begin + _STARTING_S, end - _ENDING_S)
        for begin, end in pairwise(edges)
    }


def _read(path: Path) -> tuple[tuple[MetricInstance, ...], Floats]:
    """The longest stretch without a gap; runs are too short for others."""
    items, times, values = _samples(path)
    breaks = np.flatnonzero(np.diff(times) > 1.5 * SAMPLE_NS) + 1
    edges = [0, *breaks.tolist(), len(times)]
    begin, end = max(pairwise(edges), key=lambda stretch: stretch[1] - stretch[0])
    return items, values[begin:end]


def _samples(path: Path) -> tuple[tuple[MetricInstance, ...], NDArray[np.int64], Floats]:
    """When each sample was taken, over the items that all channel tables of the file have."""
    resampler = Resampler(SAMPLE_NS)
    times, pieces = [], []
    for message, table in Slices(path):
        rows = resampler.push(message, table)
        if rows is not None:
            times.append(message.start_ns + SAMPLE_NS * np.arange(len(rows.values)))
            pieces.append(rows)
    if not pieces:
        raise TracesError(f"{path} holds no samples")
    layouts = {id(rows.items): rows.items for rows in pieces}.values()
    known = set.intersection(*({item.label for item in items} for items in layouts))
    items = tuple(item for item in pieces[0].items if item.label in known)
    values = [rows.values[:, _positions(rows.items, items)] for rows in pieces]
    return items, np.concatenate(times), np.concatenate(values)


def _positions(available: Sequence[MetricInstance], desired: Sequence[MetricInstance]) -> list[int]:
    positions = {item.label: index for index, item in enumerate(available)}
    return [positions[item.label] for item in desired]


def moving(runs: Sequence[Trace]) -> NDArray[np.bool_]:
    """The items that moved in every one of these runs, and were read throughout."""
    each = [
        ~np.isnan(run.values).any(axis=0) & (np.ptp(np.nan_to_num(run.values), axis=0) > 0)
        for run in runs
    ]
    return np.asarray(np.logical_and.reduce(each))
