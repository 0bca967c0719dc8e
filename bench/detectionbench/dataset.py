"""Labelled telemetry: one ``.npz`` a machine.

Keys: ``train`` and ``test`` (samples, metrics), the second following the first at once;
``label`` (test samples,), 1 where abnormal; ``cause_span`` (events, 2), first and last sample of
each explained event; ``cause_dims`` (events, metrics), what caused it; ``metrics``, names.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.tables.scoring.table import Table

PERIODS = {"smd": 60, "asd": 300}  # seconds between samples, by the folder's name
_KEYS = {"train", "test", "label", "cause_span", "cause_dims", "metrics"}


class DataError(ValueError):
    """A folder or file is not labelled telemetry; the text says which and why."""


@dataclass(frozen=True)
class Cause:
    """An event (first and end sample of the test, the end excluded) and its metrics (m,)."""

    first: int
    end: int
    metrics: NDArray[np.bool_]


@dataclass(frozen=True)
class Machine:
    """One machine: ``train`` is unlabelled and held to be healthy."""

    name: str
    train: Table
    test: Table
    label: NDArray[np.bool_]
    causes: tuple[Cause, ...]

    @property
    def day(self) -> int:
        """Samples a day."""
        return 86_400 * 10**9 // self.test.period_ns


def machines(folder: Path, period_s: int | None = None) -> Iterator[Machine]:
    """All machines of a folder, in the order of their names; raises ``DataError``."""
    period = period_s or PERIODS.get(folder.name)
    if period is None:
        raise DataError(f"{folder}: say how many seconds lie between samples, as {folder}:60")
    files = sorted(folder.glob("*.npz"))
    if not files:
        raise DataError(f"{folder}: there is no .npz file in it")
    for file in files:
        yield _machine(file, period)


def _machine(file: Path, period: int) -> Machine:
    try:
        with np.load(file, allow_pickle=False) as stored:
            data = {key: stored[key] for key in _KEYS}
    except (KeyError, ValueError, zipfile.BadZipFile) as error:
        raise DataError(f"{file}: not labelled telemetry: {error}") from None
    names = tuple(map(str, data["metrics"]))
    train, test = (data[key].astype(np.float64) for key in ("train", "test"))
    spans = zip(data["cause_span"].tolist(), data["cause_dims"], strict=True)
    return Machine(
        name=file.stem,
        train=_table(train, names, 0, period),
        test=_table(test, names, len(train), period),
        label=data["label"] > 0,
        causes=tuple(
            Cause(first, min(last, len(test) - 1) + 1, dims) for (first, last), dims in spans
        ),
    )


def _table(values: NDArray[np.float64], names: tuple[str, ...], first: int, period: int) -> Table:
    times = (first + np.arange(len(values), dtype=np.int64)) * (period * 10**9)
    return Table(times, names, values)


def part(table: Table, first: int, end: int) -> Table:
    """The samples from ``first`` to ``end`` (excluded)."""
    return Table(table.times_ns[first:end], table.names, table.values[first:end])
