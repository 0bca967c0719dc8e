"""Recordings of repeated runs as traces of 100 ms over the same metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.selection.resampled import Item, Resampler
from reveal_cli.recordings import Slices

Floats = NDArray[np.float64]
SAMPLE_NS = 100_000_000


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

    items: tuple[Item, ...]
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
        at = {item.label: place for place, item in enumerate(items)}
        places = [at[item.label] for item in common]
        runs.append(Trace(workload, number, values[:shortest, places]))
    return Traces(tuple(common), tuple(runs))


def _read(path: Path) -> tuple[tuple[Item, ...], Floats]:
    """The longest stretch of one channel table without a gap; runs are too short for others."""
    resampler = Resampler(SAMPLE_NS)
    stretches: list[tuple[tuple[Item, ...], list[Floats]]] = []
    last_ns = 0
    for message, table in Slices(path):
        rows = resampler.push(message, table)
        if rows is None:
            continue
        joins = bool(stretches) and rows.items is stretches[-1][0]
        if not joins or message.start_ns - last_ns > 1_500_000_000:
            stretches.append((rows.items, []))
        stretches[-1][1].append(rows.values)
        last_ns = message.start_ns
    if not stretches:
        raise TracesError(f"{path} holds no samples")
    items, pieces = max(stretches, key=lambda stretch: len(stretch[1]))
    return items, np.concatenate(pieces)


def moving(runs: Sequence[Trace]) -> NDArray[np.bool_]:
    """The items that moved in every one of these runs, and were read throughout."""
    each = [
        ~np.isnan(run.values).any(axis=0) & (np.ptp(np.nan_to_num(run.values), axis=0) > 0)
        for run in runs
    ]
    return np.asarray(np.logical_and.reduce(each))
