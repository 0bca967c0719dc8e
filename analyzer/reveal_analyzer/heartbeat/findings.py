"""Slowdowns of jobs in a node's findings: as findings of their own, or as the impact of others.

A slowdown that lasts is a finding by itself, unless another finding began when it did: then it is
the impact of that one.  A finding that is open for a minute while every job keeps its step time
gets a note that no job was slowed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from reveal_analyzer.episodes.trace import ObservedSecond
from reveal_analyzer.heartbeat.learning import LearningGate
from reveal_analyzer.heartbeat.recent_excess import RecentExcess
from reveal_analyzer.heartbeat.related import (
    MOST_REFERENCES,
    RelatedFindings,
    is_news,
    with_references,
)
from reveal_analyzer.heartbeat.slowdown_findings import (
    OnsetEvidence,
    base_finding,
    resolved,
    with_impact,
)
from reveal_analyzer.heartbeat.slowdown_state import SlowdownEnd, SlowdownState
from reveal_analyzer.heartbeat.tracker import StepTime
from reveal_analyzer.heartbeat.watch import StepWatch
from reveal_analyzer.hypotheses.model import HypothesisRule
from reveal_analyzer.state.records import restore_record, save_record
from reveal_analyzer.state.tree import StateError, StateTree, named_sections, section
from reveal_analyzer.subjects.history import SubjectHistory
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.finding import Finding, FindingChange, FindingUpdate, Impact, Resolution
from reveal_contract.time_units import NS_PER_SECOND
from reveal_contract.wire import Message

_YOUNG_S = 60  # age of a slowdown up to which its cause may slow other jobs, too


@dataclass
class _Slowdown:
    """A slowdown that is a finding: without impact, and its impact as reported and as it is.

    ``related`` are the ids of findings that were open with it; ``resumed``: since a pause.
    """

    base: Finding
    reported: Impact
    impact: Impact
    related: tuple[str, ...] = ()
    resumed: bool = False


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
        self._learning = LearningGate()
        self._recent = RecentExcess()
        self._related = RelatedFindings()
        self._slowdowns: dict[str, _Slowdown] = {}  # by subject

    @property
    def slow_subjects(self) -> frozenset[str]:
        """The jobs that are slower now."""
        return frozenset(s for s, state in self._states.items() if state.since_ns is not None)

    @property
    def slower(self) -> bool:
        """Whether a job is slower now: one of the alarms on the node."""
        return any(state.since_ns is not None for state in self._states.values())

    @property
    def any_open(self) -> bool:
        """Whether a slowdown is open: its times must stay on one clock."""
        return bool(self._slowdowns) or self.slower

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
        if not (updates or self._states or self._related.any_known):
            return []  # nearly all seconds of a node without jobs
        slowdowns = [each.base.id for each in self._slowdowns.values()]
        result = [
            self._related.with_cost(update, self._states, end_ns, slowdowns) for update in updates
        ]
        reported = {update.finding.id for update in updates}
        result += self._related.refresh(reported, self._states, end_ns)
        result += self._slowdown_updates(end_ns)
        self._forget_lost()
        return result

    def finish(self, updates: Sequence[FindingUpdate]) -> list[FindingUpdate]:
        """Return the last state of the findings that are open when watching ends."""
        result = [
            self._related.with_cost(update, self._states, update.finding.last_observed_ns)
            for update in updates
        ]
        return result + [
            FindingUpdate(FindingChange.CHANGED, self._displayed(each))
            for each in self._slowdowns.values()
        ]

    def has_recovered(self, finding_id: str) -> bool:
        """Return whether the job of a finding's impact has its baseline step time again."""
        return self._related.has_recovered(finding_id)

    def save(self) -> StateTree:
        """Return rhythms with their references, open slowdowns, and costs of other findings."""
        return {
            "watch": self._watch.save(),
            "states": {subject: state.save() for subject, state in self._states.items()},
            "slowdowns": {subject: save_record(each) for subject, each in self._slowdowns.items()},
            "related": self._related.save(),
        }

    def restore(self, tree: StateTree) -> None:
        """Continue from a saved state; raises ``StateError`` and changes nothing if it is unfit."""
        states = {
            subject: SlowdownState.restored(subject, row)
            for subject, row in named_sections(tree, "states").items()
        }
        slowdowns = {
            subject: restore_record(_Slowdown, row)
            for subject, row in named_sections(tree, "slowdowns").items()
        }
        if not slowdowns.keys() <= states.keys():
            raise StateError("a slowdown has no state of its job")
        related = RelatedFindings.restored(tree, "related")
        self._watch.restore(section(tree, "watch"))
        self._states, self._slowdowns, self._related = states, slowdowns, related

    def _track(
        self, message: Message, table: ChannelTable, second: ObservedSecond | None, end_ns: int
    ) -> None:
        may_learn = self._may_learn(end_ns)
        step_times = self._watch.update(message, table, lambda subject: subject in may_learn)
        for subject in step_times:
            self._states.setdefault(subject, SlowdownState(subject))
        for subject, state in self._states.items():
            state.update(
                step_times.get(subject), end_ns,
                unread=self._watch.is_unread(subject), gone=self._watch.is_gone(subject),
            )  # fmt: skip
        if second is None or not self._states:
            self._recent.clear()
        else:
            self._recent.push(second)

    def _may_learn(self, now_ns: int) -> Collection[str]:
        subjects = self._watch.subjects
        if not subjects:
            self._learning.clear()
            return ()
        fault = self._began_lately(now_ns)
        return self._learning.update(subjects, self.slow_subjects, fault=fault)

    def _began_lately(self, now_ns: int) -> bool:
        """Return whether a finding or a slowdown began within the last minute."""
        least_ns = now_ns - _YOUNG_S * NS_PER_SECOND
        since = (state.since_ns for state in self._states.values())
        return self._related.any_young(now_ns) or any(ns and ns > least_ns for ns in since)

    def _forget_lost(self) -> None:
        """Forget the jobs that have no rhythm any more."""
        lost = [s for s, state in self._states.items() if state.is_lost]
        for subject in lost:
            del self._states[subject]

    def _slowdown_updates(self, now_ns: int) -> list[FindingUpdate]:
        """Report slowdowns that are findings by themselves."""
        updates = (self._slowdown_update(state, now_ns) for state in self._states.values())
        return [update for update in updates if update is not None]

    def _slowdown_update(self, state: SlowdownState, now_ns: int) -> FindingUpdate | None:
        impact, slowdown = state.impact, self._slowdowns.get(state.subject)
        if slowdown is None:
            if impact is None or self._related.explains(impact):
                return None
            return self._open(impact, now_ns, resumed=state.resumed)
        if state.is_accepted:
            self._watch.accept(state.subject)
            state.accept()
            return self._resolve(slowdown, state.end, now_ns)
        # a slowdown may end, and another begin, while no slice arrives
        if impact is None or impact.since_ns != slowdown.impact.since_ns:
            return self._resolve(slowdown, state.end, now_ns)
        slowdown.base = replace(
            slowdown.base, last_observed_ns=max(state.read_ns, slowdown.base.last_observed_ns)
        )
        slowdown.impact = impact
        if not is_news(slowdown.reported, impact):
            return None
        slowdown.reported = impact
        return FindingUpdate(FindingChange.CHANGED, self._displayed(slowdown))

    def _open(self, impact: Impact, now_ns: int, *, resumed: bool) -> FindingUpdate:
        trace = self._recent.around(impact.since_ns)
        onset = OnsetEvidence(trace, self._rules, self._history)
        base = base_finding(self._node, impact, onset, now_ns)
        slowdowns = (each.base.id for each in self._slowdowns.values())
        related = (*self._related.open_ids(), *slowdowns)
        self._related.refer_to(base.id)
        slowdown = _Slowdown(base, impact, impact, related, resumed)
        self._slowdowns[impact.subject] = slowdown
        return FindingUpdate(FindingChange.OPENED, self._displayed(slowdown))

    def _displayed(self, slowdown: _Slowdown) -> Finding:
        """Return the open finding of a slowdown, which refers to those that are open with it."""
        ids = dict.fromkeys((*slowdown.related, *self._related.open_ids()))
        slowdown.related = tuple(ids)[-MOST_REFERENCES:]
        finding = with_impact(slowdown.base, slowdown.impact, resumed=slowdown.resumed)
        return with_references(finding, slowdown.related)

    def _resolve(self, slowdown: _Slowdown, end: SlowdownEnd | None, now_ns: int) -> FindingUpdate:
        del self._slowdowns[slowdown.impact.subject]
        resolution = end.resolution if end else Resolution.ENDED
        finding = with_impact(slowdown.base, slowdown.impact, resumed=slowdown.resumed)
        ended = resolved(finding, now_ns, resolution)
        return FindingUpdate(FindingChange.RESOLVED, with_references(ended, slowdown.related))
