"""Relations between cases: whether what was found now is a part of a case that is open already.

In doubt one fault gives one finding.  So what begins together belongs together, unless it names
another culprit.  What begins later belongs to an open case if the cause of that case explains it,
and if it follows the beginning or a growth of that case, or if it is another signature of the same
harm; otherwise it has a cause of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import NamedTuple

from reveal_analyzer.episodes import attribution
from reveal_analyzer.episodes.attribution import Attribution, EpisodeRecord
from reveal_analyzer.episodes.case import GROWS_S, SYMPTOM_DELAY_S, Case
from reveal_analyzer.hypotheses.model import CertainSignature, HypothesisRule
from reveal_analyzer.hypotheses.signature_matcher import CaseKey, SignatureMatch
from reveal_analyzer.subjects.history import SubjectHistory
from reveal_contract.finding import Confidence, Pod, Subject
from reveal_contract.metric import Subsystem
from reveal_contract.time_units import NS_PER_SECOND

_DECIDED_S = 4  # active seconds after a pause that say whose they are
_CAUSE_DELAY_S = 15  # from the first symptom to the signature of the cause


class Relation(StrEnum):
    """What a newcomer is to an open case."""

    NONE = "None"
    SAME = "Same"  # more evidence of the same cause
    SYMPTOM = "Symptom"  # an effect of it


class _View(NamedTuple):
    """A case with its cause and culprits as they are known now."""

    case: Case
    record: EpisodeRecord
    found: Attribution

    @property
    def rule(self) -> HypothesisRule | None:
        return self.found.cause.rule

    @property
    def rules(self) -> list[HypothesisRule]:
        """Rules of its own certain signatures, in the order in which they held, else its cause."""
        matches = self.case.episode.matches
        own = [match.rule for name, match in matches.items() if name in self.case.rules]
        # evidence of another fault may fit a rule better than its own; a signature is certain
        return own or ([self.rule] if self.rule else [])

    @property
    def subsystems(self) -> set[Subsystem]:
        """Where its cause is; where no signature says that, all that it shows in.

        What moved with a certain cause in another subsystem may be of another fault.
        """
        if self.case.is_certain:
            return {rule.subsystem for rule in self.rules}
        return set(self.case.episode.subsystems)


class Relations:
    """Finds the open case that a newcomer belongs to."""

    def __init__(
        self,
        rules: Sequence[HypothesisRule],
        history: SubjectHistory,
        record: Callable[[Case], EpisodeRecord],
    ) -> None:
        self._rules, self._history, self._record = rules, history, record

    def cause(self, case: Case) -> HypothesisRule | None:
        """Return the rule that explains a case best, as it is known now."""
        return self._view(case).rule

    def described_metrics(self, case: Case) -> frozenset[str]:
        """Return the metrics that the causes of a case describe."""
        return frozenset(m for rule in self._view(case).rules for m in rule.described_metrics())

    def owner(
        self, newcomer: Case, cases: Sequence[Case], now_ns: int
    ) -> tuple[Case, Relation] | None:
        """Return the open case that a newcomer belongs to, the youngest first, and how."""
        if not cases:
            return None
        new = self._view(newcomer)
        for case in sorted(cases, key=lambda each: -each.episode.opened_ns):
            relation = self._relation(new, self._view(case), now_ns)
            if relation is not Relation.NONE:
                return case, relation
        return None

    def effects(self, case: Case, matches: Sequence[SignatureMatch]) -> set[CaseKey]:
        """Return the signatures that the certain cause of a case explains.

        Who takes time from others is measured: another one than the culprit is another cause.
        """
        known = case.episode.matches
        causes = [known[name].rule for name in sorted(case.rules) if name in known]
        return {
            match.key
            for match in matches
            if any(cause.explains(match.rule) for cause in causes)
            and not (match.harmed and self._is_other_culprit(case, match))
        }

    def _is_other_culprit(self, case: Case, match: SignatureMatch) -> bool:
        """Return whether a subject that takes time is no culprit of a case."""
        known = case.subjects.named.culprits if case.subjects else ()
        return self._history.name(match.instance, case.episode.last_ns) not in known

    def is_culprit_back(self, case: Case) -> bool:
        """Return whether the culprit of a case has long been back at its level from before."""
        return case.subjects is not None and case.subjects.is_culprit_back(self._history)

    def is_replaced(self, case: Case) -> bool:
        """Return whether a case that was calm is active again by another culprit.

        That is decided once, when it has been active again for some seconds.
        """
        since = case.since_return()
        if not case.is_active or case.is_measured or len(since) != _DECIDED_S:
            return False
        view = self._view(case)
        return attribution.has_other_culprit(view.record, view.found.cause, self._history, since)

    def _view(self, case: Case) -> _View:
        record = self._record(case)
        return _View(case, record, attribution.attribute(record, self._rules, self._history))

    def _relation(self, new: _View, known: _View, now_ns: int) -> Relation:
        if self._is_same_cause(new, known):
            return Relation.SAME
        # two subjects that began to do something are two causes
        if names_other_culprit(new.found, known.found):
            return Relation.NONE
        if new.case.is_certain:
            return self._relation_of_signature(new, known, now_ns)
        return self._relation_of_score(new, known)

    def _is_same_cause(self, new: _View, known: _View) -> bool:
        """Return whether both have the same rule, for the same instance if that is known."""
        causes = {rule.name for rule in known.rules}
        if causes.isdisjoint(rule.name for rule in new.rules):
            return False
        # a signature of another device or subject is another cause, unless they began together
        if not new.case.rules.isdisjoint(known.case.rules):
            return _began_together(new.case, known.case)
        return True

    def _relation_of_signature(self, new: _View, known: _View, now_ns: int) -> Relation:
        rule = new.rules[0]
        if any(cause.explains(rule) for cause in known.rules):
            # who takes time is measured: another one than the culprit is another cause
            is_other = rule.is_measured and not names_same_culprit(new.found, known.found)
            is_symptom = _is_timely(new, known) and not is_other
            return Relation.SYMPTOM if is_symptom else Relation.NONE
        age_s = known.case.age_s(now_ns)
        if any(rule.explains(cause) for cause in known.rules):
            return Relation.SAME if _is_its_cause(new, known, age_s) else Relation.NONE
        if _is_same_harm(new, known):  # by nobody else
            return Relation.SAME
        if not _is_sign_of_onset(new, known, age_s):
            return Relation.NONE
        # it began with the case: another sign of the same fault, in doubt
        if rule.subsystem in known.subsystems or names_same_culprit(new.found, known.found):
            return Relation.SAME
        return Relation.NONE

    def _relation_of_score(self, new: _View, known: _View) -> Relation:
        if not _is_timely(new, known):
            return Relation.NONE
        if attribution.is_symptom_of(new.record, known.record, self._rules):
            return Relation.SYMPTOM
        # a fault without a name that widens
        shared = set(new.case.episode.subsystems) & set(known.case.episode.subsystems)
        return Relation.SAME if new.rule is None and shared else Relation.NONE


def _is_its_cause(new: _View, known: _View, age_s: int) -> bool:
    """Return whether a signature that explains the cause of an open case is what caused it."""
    if not new.rules[0].is_measured:
        return age_s <= _CAUSE_DELAY_S
    # it measures what the case is already said to come from, however late
    if _names_same_foremost(new.found, known.found):
        return True
    # the ledger sees its beginning: what began earlier is no effect of it
    return age_s <= _CAUSE_DELAY_S and _began_together(new.case, known.case)


def _is_same_harm(new: _View, known: _View) -> bool:
    """Return whether the harm of an open case to the whole node now fits another signature."""
    if any(key.instance for key in (*new.case.keys, *known.case.keys)):
        return False  # devices and subjects are harmed one by one
    harm = {_harm_of(rule.certain) for rule in known.rules if rule.certain}
    return any(rule.certain and _harm_of(rule.certain) in harm for rule in new.rules[:1])


def _harm_of(certain: CertainSignature) -> str:
    """Return the metric of the first condition of a signature."""
    return (*certain.conditions, *certain.any)[0].metric


def _began_together(new: Case, known: Case) -> bool:
    gap_ns = abs(new.episode.first_ns - known.episode.first_ns)
    return gap_ns <= GROWS_S * NS_PER_SECOND


def _is_sign_of_onset(new: _View, known: _View, age_s: int) -> bool:
    """Return whether a signature belongs to the beginning of a case."""
    if age_s <= GROWS_S:
        return True
    # The ledger needs seconds to see a new pair.  It measures what a score only guesses.
    is_guess = new.rules[0].is_measured and not known.case.is_certain
    return is_guess and age_s <= _CAUSE_DELAY_S and _began_together(new.case, known.case)


def _is_timely(new: _View, known: _View) -> bool:
    """Return whether a newcomer follows the beginning or a growth of a case, or its culprit."""
    delay_ns = new.case.episode.first_ns - known.case.episode.first_ns
    if delay_ns <= SYMPTOM_DELAY_S * NS_PER_SECOND or known.case.trace.has_grown:
        return True
    return names_same_culprit(new.found, known.found)


def names_other_culprit(new: Attribution, known: Attribution) -> bool:
    """Return whether both have a measured culprit, and the newcomer's is none of the known."""
    foremost = _foremost(new)
    return bool(foremost and _foremost(known)) and foremost not in known.culprits.culprits


def names_same_culprit(new: Attribution, known: Attribution) -> bool:
    """Return whether the measured culprit of the newcomer is one of the known ones."""
    foremost = _foremost(new)
    return bool(foremost) and foremost in known.culprits.culprits


def _names_same_foremost(new: Attribution, known: Attribution) -> bool:
    """Return whether the measured culprit of the newcomer is the first of the known ones."""
    return bool(foremost := _foremost(new)) and foremost == known.culprits.first


def _foremost(found: Attribution) -> str:
    """Return the name of the foremost culprit if its part is measured, else an empty one."""
    named: list[Pod | Subject] = [*found.culprits.pods, *found.culprits.subjects]
    measured = {_name(each) for each in named if each.confidence is Confidence.MEASURED}
    return found.culprits.first if found.culprits.first in measured else ""


def _name(culprit: Pod | Subject) -> str:
    return f"{culprit.namespace}/{culprit.name}" if isinstance(culprit, Pod) else culprit.name
