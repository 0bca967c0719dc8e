"""Observations of one case, accumulated per column over its own active seconds.

A trace keeps sums over blocks of ten active seconds: the last minute says what is true now, and the
worst block what was true at the worst.  A column that leaves the channel table keeps its last mean:
a device that disappears leaves its evidence.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from reveal_analyzer.arrays import Bools, Floats, Floats32, Indices
from reveal_analyzer.derive.columns import Column, ColumnPlan, previous_indices
from reveal_analyzer.episodes.column_state import restore_columns, save_columns
from reveal_analyzer.hypotheses.column_stats import ColumnStats
from reveal_analyzer.state.tree import (
    StateTree,
    array,
    integer,
    number,
    section,
    texts,
)
from reveal_contract.time_units import NS_PER_SECOND

AnyFloats = Floats32 | Floats  # live scores use single precision, offline ones double

BLOCK_S = 10  # active seconds in a block
_BLOCKS = 6  # the last minute
_GROWTH = 1.5  # times the strength before
_LEAVES_EVIDENCE = 0.5  # mean weighted excess from which a column that is gone is kept


class ObservedSecond(NamedTuple):
    """One scored second, by column of ``plan``.

    ``excess`` (2, columns) is the distance above and below the baseline in spreads;
    ``weighted_excess`` (columns) is what counts for the score.  ``unobserved`` (columns) marks
    columns that have not been read for seconds; empty if all are read.
    """

    start_ns: int
    plan: ColumnPlan
    values: Floats
    excess: AnyFloats
    weighted_excess: AnyFloats
    baseline: Floats
    unobserved: Bools = np.zeros(0, np.bool_)


@dataclass
class Block:
    """Sums over up to ten active seconds; ``counts`` are the seconds in which a column was read."""

    start_ns: int
    seconds: int
    counts: Floats
    sums: Floats
    weighted: Floats
    strength: float = 0.0  # sum over the seconds
    peak: float = 0.0  # highest score ratio

    @classmethod
    def empty(cls, start_ns: int, width: int) -> Block:
        return cls(start_ns, 0, np.zeros(width), np.zeros(width), np.zeros(width))

    def add(self, other: Block) -> None:
        """Add the seconds of another block."""
        self.seconds += other.seconds
        self.counts, self.sums = self.counts + other.counts, self.sums + other.sums
        self.weighted = self.weighted + other.weighted
        self.strength += other.strength
        self.peak = max(self.peak, other.peak)

    def remap(self, source: Indices) -> None:
        """Adopt another set of columns; -1 marks new ones."""
        for name in ("counts", "sums", "weighted"):
            setattr(self, name, _moved(getattr(self, name), source, 0.0))

    def save(self, chosen: Indices) -> StateTree:
        """Return the sums of some columns as a state tree."""
        return {
            "start_ns": self.start_ns,
            "seconds": self.seconds,
            "counts": np.rint(self.counts[chosen]).astype(np.uint8),
            "sums": self.sums[chosen].astype(np.float32),
            "weighted": self.weighted[chosen].astype(np.float32),
            "strength": float(self.strength),
            "peak": float(self.peak),
        }

    @classmethod
    def restore(cls, tree: StateTree, width: int) -> Block:
        """Return the block of a state tree; raises ``StateError``."""
        return cls(
            integer(tree, "start_ns"),
            integer(tree, "seconds", most=BLOCK_S * _BLOCKS),
            array(tree, "counts", np.float64, (width,)),
            array(tree, "sums", np.float64, (width,)),
            array(tree, "weighted", np.float64, (width,)),
            number(tree, "strength"),
            number(tree, "peak"),
        )

    def split(self) -> list[Block]:
        """Return blocks of up to ten seconds with the means of this one, which they add up to."""
        parts = max(1, -(-self.seconds // BLOCK_S))
        ends = [self.seconds * part // parts for part in range(parts + 1)]
        blocks = []
        for begin, end in itertools.pairwise(ends):
            share = (end - begin) / max(self.seconds, 1)
            start_ns = self.start_ns + begin * NS_PER_SECOND
            sums = self.counts * share, self.sums * share, self.weighted * share
            blocks.append(Block(start_ns, end - begin, *sums, self.strength * share, self.peak))
        return blocks

    @property
    def mean_strength(self) -> float:
        return self.strength / max(self.seconds, 1)

    @property
    def means(self) -> Floats:
        """Mean of each column; NaN if it was never read."""
        return np.where(self.counts > 0, self.sums / np.maximum(self.counts, 1), np.nan)


class Trace:
    """Values, excess and baseline of every column over the active seconds of a case.

    ``baseline`` is that of the first second: it does not follow the fault.
    """

    def __init__(self) -> None:
        self._plan: ColumnPlan | None = None
        self._columns: tuple[Column, ...] = ()
        self._blocks: list[Block] = []
        self._worst: Block | None = None
        self._last_means: Floats = np.zeros(0)  # of columns that no block knows any more
        self.excess: Floats = np.zeros((2, 0))  # the peaks since the opening
        self.baseline: Floats = np.zeros(0)

    def add(
        self,
        second: ObservedSecond,
        ratio: float = 0.0,
        strength: float = 0.0,
        subjects: Mapping[Column, float] | None = None,
    ) -> None:
        """Count one active second.

        ``ratio`` is the score of the case as a multiple of its threshold.  ``strength`` compares
        seconds of the case with each other.  ``subjects`` are values of columns of single subjects,
        which a plan has only as part of a sum.
        """
        if not second.excess.shape[1]:
            return
        own = subjects or {}
        if second.plan is not self._plan or not own.keys() <= set(self._columns[self._width :]):
            self._adopt(second, own)
        block = self._block(second.start_ns)
        values = self._extended(second.values, own)
        block.seconds += 1
        block.strength += strength
        block.peak = max(block.peak, ratio)
        block.counts += ~np.isnan(values)
        block.sums += np.nan_to_num(values)
        width = self._width
        block.weighted[:width] += second.weighted_excess
        self.excess[:, :width] = np.maximum(self.excess[:, :width], second.excess)

    @property
    def stats(self) -> ColumnStats:
        """Mean of each column over the last active minute (NaN if never read), and its peaks."""
        return ColumnStats(self._columns, self._means(), self.excess)

    @property
    def weights(self) -> Floats:
        """Mean weighted excess of each column: how much the finding rests on it."""
        if not self._blocks:
            return np.zeros(len(self._columns))
        total = np.sum([block.weighted for block in self._blocks], axis=0)
        return np.asarray(total / max(self.seconds, 1))

    @property
    def seconds(self) -> int:
        """Active seconds of the last minute."""
        return sum(block.seconds for block in self._blocks)

    @property
    def peak(self) -> float:
        """Highest score ratio of the last active minute."""
        return max((block.peak for block in self._blocks), default=0.0)

    @property
    def has_grown(self) -> bool:
        """Whether the last half minute is clearly stronger than the one before."""
        strengths = [block.mean_strength for block in self._blocks]
        before = strengths[: -_BLOCKS // 2]
        return bool(before) and max(strengths) > _GROWTH * max(before) > 0

    @property
    def strength(self) -> float:
        """Mean strength of the last active minute."""
        return sum(block.strength for block in self._blocks) / max(self.seconds, 1)

    def worst(self) -> WorstSeconds | None:
        """Return the worst ten seconds since the opening; None before there were ten."""
        block = self._worst_block()
        if block is None:
            return None
        alone = Trace()
        alone._plan, alone._columns = self._plan, self._columns
        alone._blocks, alone.excess, alone.baseline = [block], self.excess, self.baseline
        alone._last_means = self._last_means
        return WorstSeconds(block.start_ns, block.mean_strength, alone)

    def save(self, labels: Collection[str], most: int = 128) -> StateTree:
        """Return the evidence as a state tree: the columns with these labels, and what weighs.

        Of more than ``most`` columns those with the most weight are saved.
        """
        weights, requested = self.weights, set(labels)
        chosen = np.array(
            [
                index
                for index, column in enumerate(self._columns)
                if column.label in requested or self._is_evidence(index, weights[index])
            ],
            np.intp,
        )
        chosen = np.sort(chosen[np.argsort(-weights[chosen], kind="stable")[:most]])
        worst = self._worst_block()
        return {
            "columns": save_columns(self._columns[index] for index in chosen),
            "baseline": self.baseline[chosen].astype(np.float32),
            "excess": self.excess[:, chosen].astype(np.float32),
            "last_means": self._last_means[chosen].astype(np.float32),
            "recent": self._recent().save(chosen),
            "worst": worst.save(chosen) if worst else None,
        }

    @classmethod
    def restore(cls, tree: StateTree) -> Trace:
        """Return the trace of a state tree; raises ``StateError``."""
        trace = cls()
        trace._columns = tuple(restore_columns(texts(tree, "columns")))
        width = len(trace._columns)
        trace.baseline = array(tree, "baseline", np.float64, (width,))
        trace.excess = array(tree, "excess", np.float64, (2, width))
        trace._last_means = array(tree, "last_means", np.float64, (width,))
        trace._blocks = Block.restore(section(tree, "recent"), width).split()
        if tree.get("worst") is not None:
            trace._worst = Block.restore(section(tree, "worst"), width)
        return trace

    @property
    def _width(self) -> int:
        """Number of columns of the plan; those of subjects and of what is gone follow."""
        return len(self._plan.columns) if self._plan else 0

    def _recent(self) -> Block:
        """Return the last active minute as a single block."""
        whole = Block.empty(self._blocks[0].start_ns if self._blocks else 0, len(self._columns))
        for block in self._blocks:
            whole.add(block)
        return whole

    def _means(self) -> Floats:
        if not self._blocks:
            return self._last_means.copy()
        counts = np.sum([block.counts for block in self._blocks], axis=0)
        sums = np.sum([block.sums for block in self._blocks], axis=0)
        return np.where(counts > 0, sums / np.maximum(counts, 1), self._last_means)

    def _block(self, start_ns: int) -> Block:
        """Return the block of this second, a new one after ten seconds."""
        if not self._blocks or self._blocks[-1].seconds >= BLOCK_S:
            self._blocks.append(Block.empty(start_ns, len(self._columns)))
            if len(self._blocks) > _BLOCKS:
                gone = self._blocks.pop(0)
                known = gone.counts > 0
                self._last_means = np.where(known, gone.means, self._last_means)
                self._worst = self._worse(gone)
        return self._blocks[-1]

    def _worst_block(self) -> Block | None:
        full = [block for block in self._blocks if block.seconds >= BLOCK_S]
        known = [*full, self._worst] if self._worst else full
        return max(known, key=lambda block: block.mean_strength, default=None)

    def _worse(self, block: Block) -> Block:
        worst = self._worst
        return block if worst is None or block.mean_strength > worst.mean_strength else worst

    def _extended(self, values: Floats, own: Mapping[Column, float]) -> Floats:
        """Return the values of a plan, followed by those of subjects and of what is gone."""
        extra = [own.get(column, np.nan) for column in self._columns[self._width :]]
        return np.concatenate([values, extra]) if extra else values

    def _adopt(self, second: ObservedSecond, own: Mapping[Column, float]) -> None:
        """Carry the columns over by label to another plan, with the columns of subjects."""
        weights, previous = self.weights, self._columns
        labels = set(second.plan.labels)
        kept = [
            column
            for index, column in enumerate(previous)
            if column.label not in labels
            and (index >= self._width or self._is_evidence(index, weights[index]))
        ]
        added = [column for column in own if column not in kept]
        self._plan = second.plan
        self._columns = (*second.plan.columns, *kept, *added)
        source = previous_indices(
            [column.label for column in self._columns], [column.label for column in previous]
        )
        baseline = np.concatenate([second.baseline, np.full(len(kept) + len(added), np.nan)])
        self.baseline = np.where(source < 0, baseline, _moved(self.baseline, source, np.nan))
        self.excess = _moved(self.excess, source, 0.0)
        self._last_means = _moved(self._last_means, source, np.nan)
        for block in [*self._blocks, *([self._worst] if self._worst else [])]:
            block.remap(source)

    def _is_evidence(self, index: int, weight: float) -> bool:
        return weight > _LEAVES_EVIDENCE or bool(self.excess[:, index].max() > 1.0)


def _moved(values: Floats, source: Indices, new: float) -> Floats:
    """Return the last axis in another order; ``new`` where there was nothing."""
    if not values.shape[-1]:
        return np.full((*values.shape[:-1], source.size), new)
    return np.where(source < 0, new, values[..., source])


def only_of(second: ObservedSecond, chosen: Bools, weighted: AnyFloats) -> ObservedSecond:
    """Return a second in which the other columns are within their baseline."""
    excess = np.where(chosen, second.excess, 0.0)
    return second._replace(excess=excess, weighted_excess=np.where(chosen, weighted, 0.0))


class WorstSeconds(NamedTuple):
    """The worst ten active seconds of a case."""

    start_ns: int
    strength: float
    trace: Trace
