"""Measures of scores, alarms and rankings in which the labels choose nothing.

No point adjustment and no best threshold: a threshold comes from outside, or the measure is one
of the ordering alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Span = tuple[int, int]  # first and end sample, the end excluded

_THRESHOLDS = 250  # of a surface, as in TSB-AD


def stretches(flags: Bools) -> list[Span]:
    """Stretches of set flags."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]])))
    return [(int(first), int(end)) for first, end in edges.reshape(-1, 2)]


def auc_pr(label: Bools, score: Floats) -> float:
    """Average precision: the sum of precision times the gain of recall, ties taken at once."""
    order = np.argsort(-score, kind="stable")
    last = np.append(np.flatnonzero(np.diff(score[order])), len(score) - 1)
    hits = np.cumsum(label[order])[last]
    gained = np.diff(np.concatenate([[0], hits])) / max(1, int(hits[-1]))
    return float(gained @ (hits / (last + 1)))


def vus_pr(label: Bools, score: Floats, longest: int = 100) -> float:
    """Volume under the precision-recall surface (Paparrizos et al., VLDB 2022).

    For every buffer of 0 to ``longest`` samples labels fade out beside an event, and recall
    counts the events that were met at all; as TSB-AD computes it, at 250 thresholds.
    """
    order = np.argsort(-score, kind="stable")
    thresholds = score[order][np.linspace(0, len(score) - 1, _THRESHOLDS).astype(int)]
    flagged = np.searchsorted(-score[order], -thresholds, side="right")
    surface = _Surface(label, score, thresholds, order, flagged)
    return float(np.mean([surface.area(buffer) for buffer in range(longest + 1)]))


@dataclass(frozen=True)
class _Surface:
    label: Bools
    score: Floats
    thresholds: Floats  # falling
    order: NDArray[np.intp]  # samples by falling score
    flagged: NDArray[np.intp]  # samples at or over each threshold

    def area(self, buffer: int) -> float:
        """Average precision with labels that fade out over half a buffer on either side."""
        soft = _faded(self.label, buffer)
        positives = float(self.label.sum())
        hits, soft_hits = self._over(self.label.astype(np.float64)), self._over(soft)
        # what is met of the buffers adds to what could have been found, by half
        expected = positives + (soft_hits - hits) / 2.0
        recall = np.minimum(soft_hits / expected, 1.0) * self._met(buffer // 2)
        gained = np.diff(np.concatenate([[0.0], recall]))
        return float(gained @ (soft_hits / self.flagged))

    def _over(self, weights: Floats) -> Floats:
        """Sum of weights of the samples over each threshold."""
        return np.concatenate([[0.0], np.cumsum(weights[self.order])])[self.flagged]

    def _met(self, half: int) -> Floats:
        """Share of events, with their buffers, that each threshold flags a sample of."""
        peaks = [self.score[first:end].max() for first, end in _widened(self.label, half)]
        return np.mean(np.array(peaks)[None, :] >= self.thresholds[:, None], axis=1)


def _faded(label: Bools, buffer: int) -> Floats:
    """Labels with the root of a straight slope on either side of each event, at most 1."""
    soft = label.astype(np.float64)
    fall = np.sqrt(1.0 - np.arange(1, buffer // 2 + 1) / max(1, buffer))
    for first, end in stretches(label):
        after = soft[end : end + len(fall)]
        after += fall[: len(after)]
        before = soft[max(0, first - len(fall)) : first]
        before += fall[: len(before)][::-1]
    return np.minimum(soft, 1.0)


def _widened(label: Bools, half: int) -> list[Span]:
    """Events with ``half`` a buffer on either side, joined where they meet."""
    wide: list[Span] = []
    for first, end in stretches(label):
        begin, stop = max(0, first - half), min(len(label), end + half)
        if wide and begin < wide[-1][1]:
            wide[-1] = wide[-1][0], stop
        else:
            wide.append((begin, stop))
    return wide


@dataclass(frozen=True)
class Alarms:
    """What an operator sees.  ``delays`` in samples, of the events found."""

    events: int
    found: int
    delays: tuple[int, ...]
    false: int
    quiet_days: float


def alarms(label: Bools, flags: Bools, day: int) -> Alarms:
    """Events found and false alarms, with ``day`` samples a day.

    An event is found if a flag falls in it or within half an hour after.  Flags at most half an
    hour apart are one alarm; a false one lies outside all events widened by half an hour, and
    counts again each hour that it lasts, so that an alarm that never ends is no way out.
    """
    grace, hour = max(1, day // 48), max(1, day // 24)
    near = np.zeros(len(label), np.bool_)
    delays = []
    for first, end in stretches(label):
        near[max(0, first - grace) : end + grace] = True
        hits = np.flatnonzero(flags[first : end + grace])
        delays += hits[:1].tolist()
    false = 0
    for first, end in stretches(~near):
        joined = _closed(stretches(flags[first:end]), grace)
        false += sum(-(-(stop - begin) // hour) for begin, stop in joined)
    away = len(label) - int(near.sum())
    return Alarms(len(stretches(label)), len(delays), tuple(delays), false, away / day)


def found_within_budget(label: Bools, score: Floats, day: int, budget: float = 1.0) -> float:
    """Largest share of events that any threshold finds at ``budget`` false alarms a day or less."""
    thresholds = np.unique(np.quantile(score, 1.0 - np.geomspace(1e-4, 0.3, 160)))
    observed = [alarms(label, score > threshold, day) for threshold in thresholds]
    within = [each for each in observed if each.false <= budget * each.quiet_days]
    return max((each.found / each.events for each in within), default=0.0)


def hit_rate(ranking: Sequence[int], truth: Bools, factor: float) -> float:
    """HitRate@P% (OmniAnomaly, KDD 2019): causes among the first P % x their number."""
    count = int(truth.sum())
    return float(truth[list(ranking[: int(factor * count)])].sum() / count)


def _closed(spans: Sequence[Span], gap: int) -> list[Span]:
    """Spans with holes of less than ``gap`` samples closed."""
    if not spans:
        return []
    splits = [
        index
        for index, (first, other) in enumerate(pairwise(spans), 1)
        if other[0] - first[1] >= gap
    ]
    edges = [0, *splits, len(spans)]
    return [(spans[begin][0], spans[stop - 1][1]) for begin, stop in pairwise(edges)]
