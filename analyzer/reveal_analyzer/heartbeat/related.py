"""The other findings of a node, and what jobs lost by each of them.

A job's slowdown is the impact of a finding only if both began at about the same time.  What an
older slowdown costs says nothing about a finding that opens later.  A finding is never less severe
than the slowdown that is its impact: that one is not reported by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from reveal_analyzer.heartbeat.loss_comparison import comparison_note
from reveal_analyzer.heartbeat.slowdown_state import STEADY_S, SlowdownState
from reveal_analyzer.state.records import restore_record, save_record
from reveal_analyzer.state.tree import StateTree, named_sections
from reveal_contract import severity
from reveal_contract.finding import (
    Finding,
    FindingChange,
    FindingUpdate,
    Impact,
    Resolution,
    Severity,
)
from reveal_contract.time_units import NS_PER_SECOND

# A slowdown belongs to a finding that began at most so long before it, or after it: a slowdown
# shows at once, and other metrics may need longer to leave their range.
_BEFORE_NS, _AFTER_NS = 15 * NS_PER_SECOND, 45 * NS_PER_SECOND
_COVERED_S = 60  # after that finding's end, a slowdown that lasts is a finding by itself
_YOUNG_S = 60  # age of an open finding; its level is the new normal afterwards
_MOST_SAVED = 32
MOST_REFERENCES = 5  # of one finding to others, the latest
_TOGETHER = "open on this node at the same time: "
_STEADY = "changed, job not slowed"
_RECOVERED = "steps of {} are back at their baseline since {:%H:%M:%S}Z"

States = Mapping[str, SlowdownState]


@dataclass
class _RelatedFinding:
    """A finding of the node's counters: its times, what it costs, and how it was last reported.

    ``bare`` is the finding without impact and notes of this module; ``None`` after a restart,
    until it is reported again.  ``cost`` is its impact, ``harm`` the severity of that while jobs
    are slower, and ``note`` the note on it.
    """

    first_ns: int
    bare: Finding | None = None
    resolved_ns: int | None = None
    cost: Impact | None = None
    note: str = ""
    slowdowns: tuple[str, ...] = ()  # ids of findings of slowdowns that were open with it
    harm: Severity = Severity.LOW

    def displayed(self) -> Finding | None:
        """Return the finding with what it costs."""
        if self.bare is None:
            return None
        losses = self.bare.lost_time
        compared = comparison_note(self.cost, losses) if self.cost and not self.note else ""
        notes = (*self.bare.notes, *filter(None, (self.note, compared)))
        worst = max(self.bare.severity, self.harm, key=lambda each: each.rank)
        finding = replace(self.bare, impact=self.cost, severity=worst, notes=notes)
        return with_references(finding, self.slowdowns)


@dataclass(frozen=True)
class _SavedCost:
    """What is saved of a finding; its source saves the rest."""

    first_ns: int
    resolved_ns: int | None
    cost: Impact | None
    note: str
    slowdowns: tuple[str, ...] = ()
    harm: Severity = Severity.LOW


class RelatedFindings:
    """Findings of other sources, by id."""

    def __init__(self) -> None:
        self._known: dict[str, _RelatedFinding] = {}

    @property
    def any_known(self) -> bool:
        """Return whether a finding is open or was lately."""
        return bool(self._known)

    def refer_to(self, slowdown: str) -> None:
        """Note that the finding of a slowdown is open together with those that are open."""
        for related in self._known.values():
            if related.resolved_ns is None:
                related.slowdowns = (*related.slowdowns, slowdown)[-MOST_REFERENCES:]

    def any_young(self, now_ns: int) -> bool:
        """Return whether an open finding began less than a minute ago."""
        return any(
            related.resolved_ns is None and related.first_ns > now_ns - _YOUNG_S * NS_PER_SECOND
            for related in self._known.values()
        )

    def explains(self, impact: Impact) -> bool:
        """Return whether a finding began when this slowdown did."""
        return any(_belongs(impact, related) for related in self._known.values())

    def with_cost(
        self, update: FindingUpdate, states: States, now_ns: int, slowdowns: Iterable[str] = ()
    ) -> FindingUpdate:
        """Return the update of another finding with what it costs jobs.

        ``slowdowns`` are the ids of slowdowns that are findings of their own and open now.
        """
        if update.change is FindingChange.SUSPECTED:
            return update
        finding = update.finding
        related = self._known.get(finding.id)
        if related is None:
            related = _RelatedFinding(finding.first_observed_ns, slowdowns=tuple(slowdowns))
            self._known[finding.id] = related
        related.first_ns = finding.first_observed_ns
        related.bare = finding
        if related.resolved_ns is None:
            _evaluate(related, states, now_ns)
        related.resolved_ns = now_ns if update.change is FindingChange.RESOLVED else None
        return FindingUpdate(update.change, related.displayed() or finding)

    def refresh(self, reported: Iterable[str], states: States, now_ns: int) -> list[FindingUpdate]:
        """Return updates of open findings whose cost became known, or is known better.

        Those that were ``reported`` in this second are up to date.
        """
        self._forget(now_ns)
        updates, current = [], set(reported)
        for id_, related in self._known.items():
            if related.resolved_ns is not None or id_ in current:
                continue
            before, harm = (related.cost, related.note), related.harm
            _evaluate(related, states, now_ns)
            if not _is_news(before, (related.cost, related.note)):
                (related.cost, related.note), related.harm = before, harm
            elif (displayed := related.displayed()) is not None:
                updates.append(FindingUpdate(FindingChange.CHANGED, displayed))
        return updates

    def open_ids(self) -> tuple[str, ...]:
        """Return the ids of the findings that were reported as open, the oldest first."""
        open_ = {
            id_: each
            for id_, each in self._known.items()
            if each.resolved_ns is None and each.bare is not None
        }
        return tuple(sorted(open_, key=lambda id_: (open_[id_].first_ns, id_)))

    def has_recovered(self, finding_id: str) -> bool:
        """Return whether the job that a finding slowed has its baseline step time again."""
        related = self._known.get(finding_id)
        return related is not None and related.cost is not None and bool(related.note)

    def save(self) -> StateTree:
        """Return times and costs of the latest findings."""
        latest = sorted(self._known.items(), key=lambda item: item[1].first_ns)[-_MOST_SAVED:]
        return {
            id_: save_record(
                _SavedCost(
                    each.first_ns, each.resolved_ns, each.cost, each.note, each.slowdowns, each.harm
                )
            )
            for id_, each in latest
        }

    @classmethod
    def restored(cls, tree: StateTree, key: str) -> RelatedFindings:
        """Return the findings at ``key``."""
        related = cls()
        for id_, row in named_sections(tree, key).items():
            saved = restore_record(_SavedCost, row)
            related._known[id_] = _RelatedFinding(bare=None, **vars(saved))
        return related

    def _forget(self, now_ns: int) -> None:
        """Drop findings that ended more than a minute ago."""
        least_ns = now_ns - _COVERED_S * NS_PER_SECOND
        self._known = {
            id_: each
            for id_, each in self._known.items()
            if each.resolved_ns is None or each.resolved_ns >= least_ns
        }


def _belongs(impact: Impact, related: _RelatedFinding) -> bool:
    return -_AFTER_NS <= impact.since_ns - related.first_ns <= _BEFORE_NS


def _evaluate(related: _RelatedFinding, states: States, now_ns: int) -> None:
    """Set what the finding costs now, on the job that loses most by it, or a note on jobs."""
    belonging = [
        (state.impact, severity.of_slowdown(state.impact.slowdown_percent, resumed=state.resumed))
        for state in states.values()
        if state.impact is not None and _belongs(state.impact, related)
    ]
    if belonging:
        related.cost = max((each for each, _ in belonging), key=lambda each: each.slowdown_percent)
        related.harm = max((harm for _, harm in belonging), key=lambda harm: harm.rank)
        related.note = ""
    elif related.cost is not None:
        if note := _recovered_note(related.cost, states):
            related.note, related.harm = note, Severity.LOW
    elif now_ns - related.first_ns >= STEADY_S * NS_PER_SECOND:
        related.note = _steady_note(states) or related.note


def _recovered_note(cost: Impact, states: States) -> str:
    """Return the note that a job has recovered, if that was observed."""
    state = states.get(cost.subject)
    end = state.end if state else None
    if end is None or end.since_ns != cost.since_ns or end.resolution is not Resolution.ENDED:
        return ""
    moment = datetime.fromtimestamp(end.end_ns // NS_PER_SECOND, UTC)
    return _RECOVERED.format(cost.subject, moment)


def _steady_note(states: States) -> str:
    """Return the note, if every job with a readable step time has kept it."""
    if not states or any(state.steady < STEADY_S for state in states.values()):
        return ""
    names = ", ".join(sorted(states))
    return f"{_STEADY}: for {STEADY_S} s {names} kept the baseline step time"


def _is_news(before: tuple[Impact | None, str], now: tuple[Impact | None, str]) -> bool:
    """Return whether a cost or a note is new, or the cost is known better or clearly another."""
    (cost_before, note_before), (cost, note) = before, now
    if cost_before is None or cost is None or note_before != note:
        return before != now
    return cost.subject == cost_before.subject and is_news(cost_before, cost)


def with_references(finding: Finding, others: Iterable[str]) -> Finding:
    """Return the finding with a note that refers to others, after those that it refers to."""
    known = next((note for note in finding.notes if note.startswith(_TOGETHER)), "")
    ids = dict.fromkeys([*filter(None, known.removeprefix(_TOGETHER).split(", ")), *others])
    if not ids:
        return finding
    note = _TOGETHER + ", ".join(list(ids)[-MOST_REFERENCES:])
    rest = (each for each in finding.notes if each != known)
    return replace(finding, notes=(*rest, note))


def is_news(reported: Impact, now: Impact) -> bool:
    """Return whether an impact is known from a longer window, or is clearly higher or lower."""
    apart = now.low_percent > reported.high_percent or now.high_percent < reported.low_percent
    return now.window_s > reported.window_s or apart
