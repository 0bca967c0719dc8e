"""Slowdowns of jobs in a node's findings: as findings of their own, or as the impact of others.

A slowdown that lasts is a finding by itself, unless another finding was open at its onset: then it
is the impact of that one.  Every other open finding shows the impact, too.  A finding that is open
for a minute while every job keeps its step time gets a note that no job was slowed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from reveal_analyzer.episodes.trace import ObservedSecond
from reveal_analyzer.heartbeat.recent_excess import RecentExcess
from reveal_analyzer.heartbeat.slowdown_findings import OnsetEvidence, base_finding, with_impact
from reveal_analyzer.heartbeat.slowdown_state import STEADY_S, SlowdownState
from reveal_analyzer.heartbeat.tracker import StepTime
from reveal_analyzer.heartbeat.watch import StepWatch
from reveal_analyzer.hypotheses.model import HypothesisRule
from reveal_analyzer.subjects.culprits import SubjectHistory
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.finding import Finding, FindingChange, FindingUpdate, Impact
from reveal_contract.time_units import NS_PER_SECOND
from reveal_contract.wire import Message

_COVERS_S = 15  # a finding that opened this long before the onset, or later, explains the slowdown
_COVERED_S = 60  # after that finding's end, a slowdown that lasts is a finding by itself
_ALARM_S = 60  # age of an open finding; its level is the new normal afterwards
_STEADY = "changed, job not slowed"


@dataclass
class _OtherFinding:
    """A finding of the node's counters, as it was last reported."""

    finding: Finding
    resolved_ns: int | None = None


@dataclass
class _Slowdown:
    """A slowdown that is a finding: without impact, and its impact as reported and as it is."""

    base: Finding
    reported: Impact
    impact: Impact

    @property
    def needs_report(self) -> bool:
        """Whether the impact is known better, or is clearly higher or lower than reported."""
        now, reported = self.impact, self.reported
        apart = now.low_percent > reported.high_percent or now.high_percent < reported.low_percent
        return now.window_s > reported.window_s or apart


class JobMonitor:
    """Step times of one node's jobs, and what they add to its findings."""

    def __init__(
        self,
        node: str,
        rules: Sequence[HypothesisRule],
        history: SubjectHistory,
        leave_out: Callable[[Channel], bool] | None = None,
    ) -> None:
        self._node, self._rules, self._history = node, rules, history
        self._watch = StepWatch(leave_out)
        self._states: dict[str, SlowdownState] = {}  # by subject
        self._recent = RecentExcess()
        self._others: dict[str, _OtherFinding] = {}  # by id
        self._slowdowns: dict[str, _Slowdown] = {}  # by subject

    @property
    def slower(self) -> bool:
        """Whether a job is slower now: baselines must not be learned meanwhile."""
        return any(state.since_ns is not None for state in self._states.values())

    @property
    def step_times(self) -> Mapping[str, StepTime]:
        """The step times that were tracked in the last second, by subject."""
        return self._watch.step_times

    def lines(self) -> tuple[str, ...]:
        """Return a line for each watched job: its step time, or why that cannot be read."""
        return self._watch.lines()

    def update(
        self,
        message: Message,
        table: ChannelTable,
        second: ObservedSecond | None,
        updates: Sequence[FindingUpdate],
    ) -> list[FindingUpdate]:
        """Add one second; return its updates with impacts, and those that slowdowns cause."""
        end_ns = message.start_ns + len(message.fast) * message.tick_us * 1000
        self._track(message, table, second, end_ns)
        result = [self._with_cost_of(update, end_ns) for update in updates]
        reported = {update.finding.id for update in updates}
        result += self._cost_updates(reported, end_ns)
        result += self._slowdown_updates(end_ns)
        return result

    def finish(self, updates: Sequence[FindingUpdate]) -> list[FindingUpdate]:
        """Return the last state of the findings that are open when watching ends."""
        result = [self._with_cost_of(update, update.finding.last_observed_ns) for update in updates]
        return result + [
            FindingUpdate(FindingChange.CHANGED, with_impact(each.base, each.impact))
            for each in self._slowdowns.values()
        ]

    def _track(
        self, message: Message, table: ChannelTable, second: ObservedSecond | None, end_ns: int
    ) -> None:
        step_times = self._watch.update(message, table, learn=not self._is_alarm(end_ns))
        for subject in step_times:
            self._states.setdefault(subject, SlowdownState(subject))
        for subject, state in list(self._states.items()):
            state.update(step_times.get(subject), end_ns)
            if state.is_lost and subject not in self._slowdowns:
                del self._states[subject]
        if second is None or not self._states:
            self._recent.clear()
        else:
            self._recent.push(second)

    def _is_alarm(self, now_ns: int) -> bool:
        youngest_ns = now_ns - _ALARM_S * NS_PER_SECOND
        return self.slower or any(
            other.resolved_ns is None and other.finding.first_observed_ns > youngest_ns
            for other in self._others.values()
        )

    def _with_cost_of(self, update: FindingUpdate, now_ns: int) -> FindingUpdate:
        """Add the known impact to an update of another finding."""
        if update.change is FindingChange.SUSPECTED:
            return update
        before = self._others.get(update.finding.id)
        finding = self._with_cost(update.finding, before.finding if before else None, now_ns)
        resolved_ns = now_ns if update.change is FindingChange.RESOLVED else None
        self._others[finding.id] = _OtherFinding(finding, resolved_ns)
        return FindingUpdate(update.change, finding)

    def _with_cost(self, finding: Finding, before: Finding | None, now_ns: int) -> Finding:
        """Add the impact on the job that loses most, or the note that no job lost anything."""
        impact = self._worst() or (before.impact if before else None)
        if impact is not None:
            return replace(finding, impact=impact)
        if now_ns - finding.first_observed_ns < STEADY_S * NS_PER_SECOND:
            return finding
        note = self._steady_note() or _earlier_steady_note(before)
        return replace(finding, notes=(*finding.notes, note)) if note else finding

    def _cost_updates(self, reported: set[str], now_ns: int) -> list[FindingUpdate]:
        """Report open findings whose impact became known, or is known from a longer window."""
        updates = []
        for name, other in list(self._others.items()):
            if other.resolved_ns is not None:
                if now_ns - other.resolved_ns > _COVERED_S * NS_PER_SECOND:
                    del self._others[name]
                continue
            bare = replace(other.finding, notes=_without_steady_note(other.finding.notes))
            finding = self._with_cost(bare, other.finding, now_ns)
            if name not in reported and _is_better_known(other.finding, finding):
                other.finding = finding
                updates.append(FindingUpdate(FindingChange.CHANGED, finding))
        return updates

    def _worst(self) -> Impact | None:
        impacts = [state.impact for state in self._states.values() if state.impact]
        return max(impacts, key=lambda impact: impact.slowdown_percent, default=None)

    def _steady_note(self) -> str:
        """Return the note, if every job with a readable step time has kept it."""
        states = list(self._states.values())
        if not states or any(state.steady < STEADY_S for state in states):
            return ""
        names = ", ".join(sorted(state.subject for state in states))
        return f"{_STEADY}: for {STEADY_S} s {names} kept the baseline step time"

    def _slowdown_updates(self, now_ns: int) -> list[FindingUpdate]:
        """Report slowdowns that are findings by themselves."""
        updates = []
        for subject, state in list(self._states.items()):
            update = self._slowdown_update(subject, state.impact, now_ns)
            if update is not None:
                updates.append(update)
        return updates

    def _slowdown_update(
        self, subject: str, impact: Impact | None, now_ns: int
    ) -> FindingUpdate | None:
        slowdown = self._slowdowns.get(subject)
        if slowdown is None:
            if impact is None or self._is_covered(impact.since_ns):
                return None
            return self._open(impact, now_ns)
        if impact is None:
            del self._slowdowns[subject]
            resolved = with_impact(slowdown.base, slowdown.impact, resolved_ns=now_ns)
            return FindingUpdate(FindingChange.RESOLVED, resolved)
        slowdown.base = replace(slowdown.base, last_observed_ns=now_ns)
        slowdown.impact = impact
        if not slowdown.needs_report:
            return None
        slowdown.reported = impact
        return FindingUpdate(FindingChange.CHANGED, with_impact(slowdown.base, impact))

    def _is_covered(self, since_ns: int) -> bool:
        """Return whether another finding explains a slowdown."""
        earliest_ns = since_ns - _COVERS_S * NS_PER_SECOND
        return any(
            other.finding.first_observed_ns >= earliest_ns for other in self._others.values()
        )

    def _open(self, impact: Impact, now_ns: int) -> FindingUpdate:
        trace = self._recent.around(impact.since_ns)
        onset = OnsetEvidence(trace, self._rules, self._history)
        base = base_finding(self._node, impact, onset, now_ns)
        self._slowdowns[impact.subject] = _Slowdown(base, impact, impact)
        return FindingUpdate(FindingChange.OPENED, with_impact(base, impact))


def _earlier_steady_note(before: Finding | None) -> str:
    notes = before.notes if before else ()
    return next((note for note in notes if note.startswith(_STEADY)), "")


def _without_steady_note(notes: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(note for note in notes if not note.startswith(_STEADY))


def _is_better_known(before: Finding, now: Finding) -> bool:
    """Return whether an impact or a note is new, or an impact is from a longer window."""
    if before.impact is None or now.impact is None:
        return (before.impact, before.notes) != (now.impact, now.notes)
    return before.impact.subject == now.impact.subject and (
        now.impact.window_s > before.impact.window_s
    )
