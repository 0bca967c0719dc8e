"""Which hypothesis is the cause of an episode, apart from what it merely brought about.

Within the subsystem that opened the episode a certain signature that held goes before
evidence, and of several the one that fits best and explains most of the harm.  A cause whose
whole footing another hypothesis lists as its symptoms is then explained away by that one, in
whatever subsystem: interrupts and TLB shootdowns of a swapping host are no cause of their own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from reveal_analyzer.arrays import Floats
from reveal_analyzer.hypotheses.model import Rule
from reveal_analyzer.hypotheses.signatures import Evidence, confidence
from reveal_contract.metric import Harm, Subsystem

NAMED = 0.4  # confidence from which a hypothesis is named
EXPLAINS = 0.6  # and from which one that did not hold explains another away
CERTAIN = 0.9  # confidence at least of a signature that held
_WORST = 3  # families of metrics that an episode without a known cause is judged by
_HARM = 1.0  # spreads, weighed, from which a column takes part in the harm


@dataclass(frozen=True)
class Shown:
    """What an episode showed: its evidence, and how much of the harm each column is."""

    evidence: Evidence
    weight: Floats
    held: Collection[str]  # names of the hypotheses whose certain signature held, in that order
    opened_by: Subsystem
    subsystems: Sequence[Subsystem]


@dataclass(frozen=True)
class Cause:
    """``rule`` is None where nothing known fits; ``explained`` are rules it explains away."""

    rule: Rule | None
    sureness: float
    subsystem: Subsystem
    explained: tuple[Rule, ...] = ()


@dataclass
class _Family:
    """Metrics that say the same thing: the weight of the worst column, and which there are."""

    weight: float
    metrics: set[str]
    subsystem: Subsystem


@dataclass(frozen=True)
class _Fit:
    rule: Rule
    degree: float
    coverage: float
    turn: int | None  # in which its signature held, among others; None: it did not

    @property
    def held(self) -> bool:
        return self.turn is not None

    @property
    def merit(self) -> float:
        """How well it fits, and of those that fit alike, how much of the harm it explains."""
        return self.degree * (1 + self.coverage) / 2

    @property
    def supported(self) -> bool:
        """Whether it may explain others away: if it has a signature, that must have held."""
        return self.held and self.degree > 0 if self.rule.certain else self.degree >= EXPLAINS


def choose(rules: Sequence[Rule], shown: Shown) -> Cause:
    """The cause: what fits best where it began, or what explains that."""
    harm = _harm(shown)
    turns = {name: turn for turn, name in enumerate(shown.held)}
    fits = [
        _Fit(rule, confidence(rule, shown.evidence), _coverage(rule, harm), turns.get(rule.name))
        for rule in rules
    ]
    found = _within(fits, shown.opened_by) or _elsewhere(fits, shown.subsystems)
    if found is None:
        return Cause(None, 0.0, shown.opened_by)
    explained: list[_Fit] = []
    while (behind := _behind(found, fits, explained)) is not None:
        explained.append(found)
        found = behind
    sureness = max(CERTAIN, found.degree) if found.held else found.degree
    rules_explained = tuple(fit.rule for fit in explained)
    return Cause(found.rule, sureness, found.rule.subsystem, rules_explained)


def only_symptoms(rules: Sequence[Rule], shown: Shown, of: Cause) -> bool:
    """Whether an episode is nothing but what the cause of another brings about.

    Its own cause is the same, or stands on symptoms of that one; where none is known, the
    worst harm in its subsystems is what that one speaks of.
    """
    if of.rule is None:
        return False
    mine = choose(rules, shown).rule
    if mine is not None:
        return mine is of.rule or of.rule.explains(mine)
    spoken = of.rule.speaks_of()
    worst = [family for family in _harm(shown) if family.subsystem in shown.subsystems][:_WORST]
    return bool(worst) and all(family.metrics & spoken for family in worst)


def _within(fits: Iterable[_Fit], subsystem: Subsystem) -> _Fit | None:
    """The best of one subsystem: a signature that held and is not contradicted, else by fit.

    Of signatures with about the same merit the one that held first.
    """
    mine = [fit for fit in fits if fit.rule.subsystem is subsystem]
    held = [fit for fit in mine if fit.held]
    # one that is contradicted yields to a cause that fits, where there is any
    certain = [fit for fit in held if fit.degree > 0] or (
        held if not any(fit.degree >= NAMED for fit in mine) else []
    )
    if certain:
        return max(certain, key=lambda fit: (round(fit.merit, 1), -(fit.turn or 0)))
    best = max(mine, key=lambda fit: fit.merit, default=None)
    return best if best is not None and best.degree >= NAMED else None


def _elsewhere(fits: Iterable[_Fit], subsystems: Sequence[Subsystem]) -> _Fit | None:
    """A signature that held in another subsystem of the episode."""
    held = [f for f in fits if f.held and f.degree > 0 and f.rule.subsystem in subsystems]
    return max(held, key=lambda fit: fit.merit, default=None)


def _behind(found: _Fit, fits: Iterable[_Fit], explained: Sequence[_Fit]) -> _Fit | None:
    """The best supported hypothesis that what was found is a symptom of."""
    rivals = [
        fit
        for fit in fits
        if fit.supported and fit not in explained and fit.rule.explains(found.rule)
    ]
    return max(rivals, key=lambda fit: fit.merit, default=None)


def _harm(shown: Shown) -> list[_Family]:
    """What of the episode is harm, worst family first."""
    families: dict[str, _Family] = {}
    for at in np.flatnonzero(shown.weight > _HARM):
        column, weight = shown.evidence.columns[at], float(shown.weight[at])
        if column.harm is Harm.NEITHER:
            continue
        metric = column.metric
        family = families.setdefault(metric.vote, _Family(0.0, set(), metric.subsystem))
        family.weight = max(family.weight, weight)
        family.metrics.add(metric.name)
    return sorted(families.values(), key=lambda family: -family.weight)


def _coverage(rule: Rule, harm: Sequence[_Family]) -> float:
    """The share of the harm that the hypothesis speaks of, as evidence or as symptom."""
    spoken = rule.speaks_of()
    total = sum(family.weight for family in harm)
    mine = sum(family.weight for family in harm if family.metrics & spoken)
    return mine / total if total else 0.0
