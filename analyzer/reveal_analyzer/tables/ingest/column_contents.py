"""What the columns of a table hold: numbers, words, units; and which of them are metrics."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from reveal_analyzer.arrays import Bools, Floats, Indices
from reveal_analyzer.formatting import list_some
from reveal_analyzer.tables.ingest.number_texts import NumberMarks, numbers_of

_MOST_WORDS = 0.2  # of the values of a column that is read as numbers
_BRACKETS = re.compile(r"[\[(]\s*([A-Za-zµ°%/]{1,8})\s*[\])]\s*(?:\{.*\})?\Z")


# of drivers that know no value: the largest of 64 and 32 bits, and those of DCGM (dcgm_fields.h)
NO_VALUES = np.array(
    [2.0**64 - 1, 2.0**63 - 1, 2.0**32 - 1, *(2.0**47 + n for n in range(4)),
     *(2.0**31 - 16 + n for n in range(4))]
)  # fmt: skip
_LEAST_OF_NONE = float(NO_VALUES.min())
_ENDLESS = "infinite values, 2^32 - 1, 2^64 - 1 and the like"


class OmittedColumn(NamedTuple):
    """A column that is not judged, and why."""

    name: str
    reason: str


class ColumnChoice(NamedTuple):
    """The columns that are metrics, those that are not, the units, and notes on all of them."""

    kept: Indices
    omitted: tuple[OmittedColumn, ...]
    units: tuple[str, ...]
    notes: tuple[str, ...]


class ColumnContents:
    """How many numbers and words each column has, where infinity is, and what units are written."""

    def __init__(self, names: Sequence[str], marks: NumberMarks) -> None:
        width = len(names)
        self._names = names
        self.known = np.zeros(width, np.int64)
        self.words = np.zeros(width, np.int64)
        self.infinite = np.zeros(width, np.bool_)
        self.units = [""] * width
        self.first_texts: dict[int, str] = {}
        self._marks = marks

    @property
    def text(self) -> Bools:
        """The columns that hold more than some words."""
        result: Bools = self.words > _MOST_WORDS * (self.words + self.known)
        return result

    def numbers(self, block: pd.DataFrame) -> Floats:
        """Return a block as numbers, NaN where there is none."""
        plain = np.array([_plain(kind) for kind in block.dtypes], bool)
        if plain.all():
            values = np.array(block.to_numpy(np.float64, na_value=np.nan), order="C")
        else:
            values = np.full(block.shape, np.nan)
            indices = np.flatnonzero(plain)
            values[:, indices] = block.iloc[:, indices].to_numpy(np.float64, na_value=np.nan)
        for index in np.flatnonzero(~plain).tolist():
            values[:, index], words, unit = numbers_of(block[index], self._marks)
            if words and index not in self.first_texts:
                word = block[index][np.isnan(values[:, index])].dropna()
                self.first_texts[index] = str(next(iter(word), ""))
            self.words[index] += words
            self.units[index] = self.units[index] or unit
        endless = (values >= _LEAST_OF_NONE) | (values == -np.inf)
        if endless.any():
            large = values[endless]
            endless[endless] = np.isinf(large) | np.isin(large, NO_VALUES)
            self.infinite |= endless.any(axis=0)
            values[endless] = np.nan
        self.known += (~np.isnan(values)).sum(axis=0)
        return values

    def choose(
        self,
        used: Collection[int],
        ignored: Collection[int],
        chosen: Collection[int],
        constant: Collection[int],
    ) -> ColumnChoice:
        """Return the metrics: all columns with numbers.

        ``used`` are columns of times and entities; ``ignored`` are known to be no metrics;
        ``chosen`` are the only ones, if there are any; ``constant`` might distinguish entities.
        """
        every = np.arange(len(self._names))
        same = np.isin(every, list(constant))
        metric = ~np.isin(every, list(used)) & ~same
        asked = np.isin(every, list(chosen)) if chosen else np.ones(len(every), np.bool_)
        listed = ~np.isin(every, list(ignored)) & asked
        text, empty = self.text, self.known == 0
        kept: Indices = np.flatnonzero(metric & listed & ~text & ~empty)
        left_out = (
            (same, "as they distinguish no rows", "distinguishes no rows"),
            (metric & listed & text, "as they hold text", "text"),
            (metric & listed & ~text & empty, "as they are always missing", "always missing"),
            (metric & ~listed, "" if chosen else "as they are no metrics", "not a metric"),
        )
        notes = [
            f"left out, {why}: {self._listed(marked)}"
            for marked, why, _ in left_out
            if marked.any() and why
        ]
        words = np.isin(every, kept) & (self.words > 0)
        if words.any():
            count = int(self.words[words].sum())
            counted = "1 value counts" if count == 1 else f"{count} values count"
            notes.append(f"{counted} as missing, as they are words: {self._listed(words)}")
        if (endless := metric & listed & self.infinite).any():
            notes.append(f"{_ENDLESS} count as missing: {self._listed(endless)}")
        if units := [f"{self._names[i]} in {self.units[i]}" for i in kept if self.units[i]]:
            notes.append(f"units: {list_some(units, 'columns')}")
        omitted = tuple(
            OmittedColumn(label_of(self._names, index), reason)
            for marked, _, reason in left_out
            for index in np.flatnonzero(marked).tolist()
        )
        return ColumnChoice(kept, omitted, tuple(self.units), tuple(notes))

    def _listed(self, marked: Bools) -> str:
        labels = [label_of(self._names, index) for index in np.flatnonzero(marked).tolist()]
        return list_some(labels, "columns")


def label_of(names: Sequence[str], index: int) -> str:
    """Return the name of a column, or its number if it has none."""
    return names[index] or f"#{index + 1}"


def unit_in_name(name: str) -> str:
    """Return the unit in brackets at the end of a name, as in ``power.draw [W]``."""
    match = _BRACKETS.search(name)
    return match[1] if match else ""


def _plain(kind: object) -> bool:
    return pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_complex_dtype(kind)  # type: ignore[arg-type]
