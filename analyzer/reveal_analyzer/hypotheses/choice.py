"""Choice of the hypothesis that is the cause of an episode, rather than one of its effects.

A certain signature that matched takes precedence over evidence, unless the evidence explains it:
first in the subsystem that opened the episode, then in the others that it affects.  Of several, the
one that fits best and explains most of the harm is chosen.  If another hypothesis lists all of the
cause's own evidence as its symptoms, that one replaces it, in whatever subsystem it is: interrupts
and TLB shootdowns of a swapping host are not a cause.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from reveal_analyzer.arrays import Floats
from reveal_analyzer.hypotheses.column_stats import ColumnStats, confidence, contradiction, degree
from reveal_analyzer.hypotheses.model import HypothesisRule
from reveal_contract.metric import Harm, Subsystem

LEAST_FIT = 0.4  # confidence from which a hypothesis is named
EXPLAINING_FIT = 0.6  # confidence from which a hypothesis without a match explains another
MATCHED_CONFIDENCE = 0.9  # least confidence of a signature that matched
_WORST_GROUPS = 3  # metric groups that stand for an episode without a known cause
_HARM = 1.0  # weighted excess in spreads from which a column is part of the harm
_PRESENT = 0.1  # the same, below which a column is back at its baseline


@dataclass(frozen=True)
class EpisodeEvidence:
    """What a hypothesis is judged by.

    ``weights`` is the part of each column of ``stats`` in the harm; ``matched`` names the rules
    whose certain signature matches now, in the order in which they did first.
    """

    stats: ColumnStats
    weights: Floats
    matched: Collection[str]
    opened_by: Subsystem
    subsystems: Sequence[Subsystem]


@dataclass(frozen=True)
class Cause:
    """``rule`` is None if no known hypothesis fits; ``explained`` are the rules it replaced."""

    rule: HypothesisRule | None
    confidence: float
    subsystem: Subsystem
    explained: tuple[HypothesisRule, ...] = ()


@dataclass
class _HarmGroup:
    """A metric group with harm: the weight of its worst column, and its metrics."""

    weight: float
    metrics: set[str]
    subsystem: Subsystem


@dataclass(frozen=True)
class _PresentHarm:
    """Metrics of which more or less is harm, and those of them that are in harm now."""

    known: frozenset[str]
    present: frozenset[str]

    @classmethod
    def of(cls, evidence: EpisodeEvidence) -> _PresentHarm:
        rows = zip(evidence.stats.columns, evidence.weights.tolist(), strict=True)
        harmful = [(c.metric.name, weight) for c, weight in rows if c.harm is not Harm.NEITHER]
        present = frozenset(name for name, weight in harmful if weight > _PRESENT)
        return cls(frozenset(name for name, _ in harmful), present)

    def has_any_of(self, rule: HypothesisRule) -> bool:
        """Return whether the harm of now is what a rule describes, or cannot say that."""
        if self.known.isdisjoint(item.metric for item in rule.expects):
            return True
        return not self.present.isdisjoint(rule.described_metrics())


@dataclass(frozen=True)
class _Fit:
    rule: HypothesisRule
    degree: float
    coverage: float
    order: int | None  # in which its signature matched among others; None: it did not
    is_present: bool  # whether what its claim states is there, and any of the harm of now its own
    is_contradicted: bool  # by what is there, and not only by what is missing

    @property
    def matched(self) -> bool:
        return self.order is not None

    @property
    def merit(self) -> float:
        """How well it fits; of those that fit alike, the one that explains more harm is better."""
        return self.degree * (1 + self.coverage) / 2

    @property
    def may_explain(self) -> bool:
        """Whether it may replace others: if it has a signature, that must have matched."""
        if self.rule.certain:
            return self.matched and self.degree > 0
        return self.degree >= EXPLAINING_FIT


def choose(rules: Sequence[HypothesisRule], evidence: EpisodeEvidence) -> Cause:
    """Return the cause: the best fit where the episode began, or the hypothesis behind it."""
    harm = _harm(evidence)
    present = _PresentHarm.of(evidence)
    order = {name: number for number, name in enumerate(evidence.matched)}
    fits = [
        _Fit(
            rule, confidence(rule, evidence.stats), _coverage(rule, harm), order.get(rule.name),
            _is_stated(rule, evidence.stats) and (not harm or present.has_any_of(rule)),
            contradiction(rule, evidence.stats) > 0,
        )
        for rule in rules
    ]  # fmt: skip
    best = _best(fits, evidence)
    if best is None:
        return Cause(None, 0.0, evidence.opened_by)
    # follow the chain from a symptom to its cause; `explained` keeps it from going in a circle
    explained: list[_Fit] = []
    while (behind := _explaining(best, fits, explained)) is not None:
        explained.append(best)
        best = behind
    percent = max(MATCHED_CONFIDENCE, best.degree) if best.matched else best.degree
    rules_explained = tuple(fit.rule for fit in explained)
    return Cause(best.rule, percent, best.rule.subsystem, rules_explained)


def has_only_symptoms(
    rules: Sequence[HypothesisRule], evidence: EpisodeEvidence, cause: Cause
) -> bool:
    """Return whether an episode shows nothing but effects of the cause of another one."""
    if cause.rule is None:
        return False
    own = choose(rules, evidence).rule
    if own is not None:
        return own is cause.rule or cause.rule.explains(own)
    # without a cause of its own: its worst harm must be what the other cause describes
    described = cause.rule.described_metrics()
    groups = [group for group in _harm(evidence) if group.subsystem in evidence.subsystems]
    worst = groups[:_WORST_GROUPS]
    return bool(worst) and all(group.metrics & described for group in worst)


def _best(fits: Sequence[_Fit], evidence: EpisodeEvidence) -> _Fit | None:
    """Return the best hypothesis where the episode began, or a signature that it does not explain.

    A signature is certain.  Evidence that fits another hypothesis may be of something else that
    happened in the same seconds.
    """
    best = _best_in(fits, evidence.opened_by)
    if best is not None and best.matched:
        return best
    certain = _matched_in(fits, evidence.subsystems)
    if certain is None or (best is not None and best.rule.explains(certain.rule)):
        return best
    return certain


def _best_in(fits: Iterable[_Fit], subsystem: Subsystem) -> _Fit | None:
    """Return the best hypothesis of one subsystem, if one fits well enough."""
    own = [fit for fit in fits if fit.rule.subsystem is subsystem]
    matched = [fit for fit in own if fit.matched]
    # what moved at the onset only is not why an episode lasts
    fitting = [fit for fit in own if fit.is_present and fit.degree >= LEAST_FIT]
    # its columns need not have left their baseline, if that is not known or the fault was there
    certain = [fit for fit in matched if not fit.is_contradicted]
    # a signature that the evidence contradicts counts only if nothing else fits
    if not certain and not fitting:
        certain = matched
    if certain:
        # of about equal merit, the signature that matched first
        return max(certain, key=lambda fit: (round(fit.merit, 1), -(fit.order or 0)))
    return max(fitting, key=lambda fit: fit.merit, default=None)


def _matched_in(fits: Iterable[_Fit], subsystems: Sequence[Subsystem]) -> _Fit | None:
    """Return the best signature that matched in any subsystem of the episode."""
    matched = [f for f in fits if f.matched and f.degree > 0 and f.rule.subsystem in subsystems]
    return max(matched, key=lambda fit: fit.merit, default=None)


def _explaining(best: _Fit, fits: Iterable[_Fit], explained: Sequence[_Fit]) -> _Fit | None:
    """Return the best hypothesis of which ``best`` is only a symptom."""
    candidates = [
        fit
        for fit in fits
        if fit.may_explain and fit not in explained and fit.rule.explains(best.rule)
    ]
    return max(candidates, key=lambda fit: fit.merit, default=None)


def _harm(evidence: EpisodeEvidence) -> list[_HarmGroup]:
    """Return the metric groups with harm, worst first."""
    groups: dict[str, _HarmGroup] = {}
    for index in np.flatnonzero(evidence.weights > _HARM):
        column, weight = evidence.stats.columns[index], float(evidence.weights[index])
        if column.harm is Harm.NEITHER:
            continue
        metric = column.metric
        group = groups.setdefault(metric.metric_group, _HarmGroup(0.0, set(), metric.subsystem))
        group.weight = max(group.weight, weight)
        group.metrics.add(metric.name)
    return sorted(groups.values(), key=lambda group: -group.weight)


def _is_stated(rule: HypothesisRule, stats: ColumnStats) -> bool:
    """Return whether any of what the claim of a rule states is there."""
    stated = (item for item in rule.expects if item.metric in rule.stated_metrics)
    return any(degree(item, stats) > 0 for item in stated)


def _coverage(rule: HypothesisRule, harm: Sequence[_HarmGroup]) -> float:
    """Return the share of the harm that the hypothesis describes, as evidence or as symptom."""
    described = rule.described_metrics()
    total = sum(group.weight for group in harm)
    own = sum(group.weight for group in harm if group.metrics & described)
    return own / total if total else 0.0
