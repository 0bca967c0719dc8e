"""Culprits and victims that the ledger measured, instead of those that changed most."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from reveal_analyzer.hypotheses.model import HypothesisRule
from reveal_analyzer.hypotheses.signature_matcher import SignatureMatch
from reveal_analyzer.subjects.finding_subjects import NamedSubjects
from reveal_analyzer.subjects.history import SubjectHistory
from reveal_contract.finding import Confidence

Matches = Mapping[str, SignatureMatch]  # by the name of their rule


def measured_match(rule: HypothesisRule | None, matches: Matches) -> SignatureMatch | None:
    """Return the match of the ledger that tells the culprit of a cause, if there is one.

    It is that of the cause itself, or of a symptom of it: whoever starts processes by the thousand
    takes the CPUs.  A cause that names its own subject needs none.
    """
    if rule is None:
        return None
    own = matches.get(rule.name)
    if own is not None and (own.harmed or own.instance):
        return own if own.harmed else None
    for match in matches.values():
        if match.harmed and rule.explains(match.rule):
            return match
    return None


def measured_culprit(match: SignatureMatch, history: SubjectHistory, time_ns: int) -> NamedSubjects:
    """Return the subject that took the time, known by measurement; it is the only one named."""
    named = history.identify(match.instance, time_ns, Confidence.MEASURED)
    return replace(named, metric=match.columns[0].metric.name if match.columns else "")


def measured_victims(
    match: SignatureMatch, history: SubjectHistory, time_ns: int
) -> tuple[str, ...]:
    """Return the names of those whose time it took, who lost the largest share first."""
    return tuple(history.name(each.subject, time_ns) for each in match.harmed)


def loss_note(match: SignatureMatch, history: SubjectHistory, time_ns: int) -> str:
    """Return who lost how much of the time that it wanted."""
    losses = ", ".join(
        f"{history.name(each.subject, time_ns)} lost {100 * each.share:.0f} %"
        for each in match.harmed
    )
    return f"of the time that each wanted, {losses} to {history.name(match.instance, time_ns)}"
