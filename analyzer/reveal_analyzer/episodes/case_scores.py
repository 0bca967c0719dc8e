"""Scores of parts of a second: of the columns of one case, and of what no case accounts for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from reveal_analyzer.arrays import Floats, Floats32, Indices
from reveal_analyzer.derive.columns import ColumnPlan
from reveal_analyzer.episodes.episode import SecondVerdict
from reveal_analyzer.episodes.trace import AnyFloats, ObservedSecond
from reveal_analyzer.live.reference import ColumnReference
from reveal_analyzer.live.scaling import GroupPooling
from reveal_contract.metric import Subsystem

Ratios = Mapping[Subsystem, float]
_TOP = 3  # metric groups in a subsystem's score


class Baselines(Protocol):
    """What cases ask of the live score."""

    @property
    def plan(self) -> ColumnPlan:
        """The columns of the present second."""

    def reference(self, columns: Indices) -> ColumnReference:
        """Return what is normal for these columns now, to be kept with a case."""

    def deviation(self, reference: ColumnReference) -> Floats32:
        """Return the weighted excess (n,) of the present second against a kept reference."""

    def placed(self, reference: ColumnReference, weighted: Floats32) -> Floats32:
        """Return values of a reference's columns (n,) by column of the node, 0 elsewhere."""

    def over(self, weighted: Floats32, thresholds: Floats | None = None) -> Ratios:
        """Return the score of each subsystem as a multiple of its threshold, by default of now."""


class CaseScores:
    """Scores and kept references of cases.

    Without ``baselines`` (a complete recording that is judged at once) nothing is learned, so the
    present weighted excess always is that against the time before a case.
    """

    def __init__(self, baselines: Baselines | None = None) -> None:
        self._baselines = baselines
        self._pooling: tuple[ColumnPlan, GroupPooling] | None = None
        self._deviations: tuple[ObservedSecond | None, dict[ColumnReference, AnyFloats]] = None, {}

    def reference(self, columns: Indices) -> ColumnReference | None:
        """Return the reference of these columns; None if nothing is learned."""
        return None if self._baselines is None else self._baselines.reference(columns)

    def deviation(self, second: ObservedSecond, reference: ColumnReference | None) -> AnyFloats:
        """Return the weighted excess of all columns against a kept reference, 0 for others."""
        baselines = self._judging(second)
        if baselines is None or reference is None:
            return second.weighted_excess
        if self._deviations[0] is not second:
            self._deviations = second, {}
        known = self._deviations[1]
        if reference not in known:
            known[reference] = baselines.placed(reference, baselines.deviation(reference))
        return known[reference]

    def against(
        self,
        verdict: SecondVerdict,
        second: ObservedSecond,
        reference: ColumnReference | None,
        weighted: AnyFloats,
    ) -> Ratios:
        """Return the score ratios of weighted excess against the thresholds of a reference."""
        baselines = self._judging(second)
        if baselines is None or reference is None:
            return self.part(verdict, second, weighted)
        return baselines.over(weighted.astype(np.float32), reference.thresholds)

    def part(self, verdict: SecondVerdict, second: ObservedSecond, weighted: AnyFloats) -> Ratios:
        """Return the score ratios of a part of a second.

        ``weighted`` is the second's weighted excess, 0 for the columns that do not belong to the
        part.
        """
        if not verdict.score_ratios:  # the node is being learned
            return {}
        part = weighted.astype(np.float32)
        if (baselines := self._judging(second)) is not None:
            return baselines.over(part)
        pooling = self._own_pooling(second.plan)
        whole = pooling.scores(second.weighted_excess.astype(np.float32))
        rest = pooling.scores(part)
        return {
            subsystem: ratio * rest[subsystem] / whole[subsystem] if whole[subsystem] > 0 else 0.0
            for subsystem, ratio in verdict.score_ratios.items()
        }

    def _judging(self, second: ObservedSecond) -> Baselines | None:
        """Return the live score if it has the columns of this second, which may be an earlier one.

        The channel table may have changed since.
        """
        baselines = self._baselines
        return baselines if baselines is not None and baselines.plan is second.plan else None

    def _own_pooling(self, plan: ColumnPlan) -> GroupPooling:
        if self._pooling is None or self._pooling[0] is not plan:
            self._pooling = plan, GroupPooling(plan.columns, _TOP)
        return self._pooling[1]
