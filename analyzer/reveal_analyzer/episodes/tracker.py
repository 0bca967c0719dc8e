"""Open cases of one node: which second belongs to which case, what opens one, and when it ends.

There is one case per cause.  Two things open a case: a certain signature that matches for as long
as it asks, or a residual score above its threshold in 5 of 10 seconds, or far above it in 4 of 10.
The residual score is that of the columns that no open case accounts for.  A residual score above
the threshold in 2 of 3 seconds, or a signature that matches but not yet for long enough, is only
*suspected*.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from reveal_analyzer.arrays import Bools
from reveal_analyzer.derive.columns import ColumnPlan
from reveal_analyzer.episodes.case import MOVED, SYMPTOM_DELAY_S, Case, Present, own_metrics
from reveal_analyzer.episodes.case_scores import CaseScores, Ratios
from reveal_analyzer.episodes.episode import Episode, SecondVerdict
from reveal_analyzer.episodes.lifecycle import LifecycleSettings, Observation
from reveal_analyzer.episodes.relations import Relation, Relations
from reveal_analyzer.episodes.saved_cases import restore_all, save_all
from reveal_analyzer.episodes.trace import ObservedSecond, only_of
from reveal_analyzer.hypotheses.model import HypothesisRule
from reveal_analyzer.hypotheses.signature_matcher import SignatureMatch
from reveal_analyzer.state.tree import StateTree, integer
from reveal_contract.finding import FindingChange
from reveal_contract.metric import Subsystem
from reveal_contract.time_units import NS_PER_SECOND

_APART_NS = 2_500_000_000  # two seconds lie between


@dataclass(frozen=True)
class TrackerSettings:
    """When a residual score is suspected and when it opens a case, in seconds."""

    need: int = 5  # above the threshold, of the last `of`: opened
    need_far: int = 4  # the same of seconds far above it
    far: float = 3.0  # times the threshold
    of: int = 10
    suspect: int = 2  # of the last `suspect_of`: suspected
    suspect_of: int = 3
    most_open: int = 32  # cases of one node


@dataclass
class _RecentSecond:
    """A second of the last ten; ``residual`` are score ratios of what no open case explains."""

    verdict: SecondVerdict
    second: ObservedSecond
    residual: Ratios
    unowned: Sequence[SignatureMatch]

    def over(self, times: float = 1.0) -> set[Subsystem]:
        """Return the subsystems whose residual score is above its threshold, or far above."""
        return {subsystem for subsystem, ratio in self.residual.items() if ratio > times}

    def subsystems(self) -> set[Subsystem]:
        """Return the subsystems in which something is anomalous that no case explains."""
        return self.over() | {match.rule.subsystem for match in self.unowned}


CaseChange = tuple[FindingChange, Case]


class CaseTracker:
    """Sorts the seconds of one node into cases.

    ``begin`` is called with a case that opens, before it is compared with the open ones.
    """

    def __init__(
        self,
        scores: CaseScores,
        relations: Relations,
        begin: Callable[[Case], None] = lambda case: None,
        settings: TrackerSettings | None = None,
        lifecycle: LifecycleSettings | None = None,
    ) -> None:
        self._scores, self._relations, self._begin = scores, relations, begin
        self._settings = settings or TrackerSettings()
        self._lifecycle = lifecycle or LifecycleSettings()
        self.open: list[Case] = []
        self._recent: deque[_RecentSecond] = deque(maxlen=self._settings.of)
        self._last_ns: int | None = None
        self._suspected = False

    def update(self, verdict: SecondVerdict, second: ObservedSecond) -> list[CaseChange]:
        """Add one second; return the cases that opened, changed or ended."""
        changes = self._skip_gap(verdict.start_ns)
        recent = _RecentSecond(verdict, second, verdict.score_ratios, verdict.present)
        self._recent.append(recent)
        if not verdict.anomalous and not self.open:  # nearly all seconds of nearly all nodes
            self._suspected = False
            return changes
        present = {match.key: match for match in verdict.present}
        changes += self._observe_all(recent, present)
        self._take_effects(recent)
        self._subtract_claims([recent])
        changes += self._spread(recent)
        opened = self._open_signatures(recent) + self._open_score(recent)
        changes += opened
        if not opened:
            changes += self._suspect(recent)
        return changes

    def save(self) -> StateTree:
        """Return the open cases as a state tree."""
        return {"last_ns": self._last_ns or 0, **save_all(self.open)}

    def restore(self, tree: StateTree, rules: Mapping[str, HypothesisRule]) -> None:
        """Continue with the open cases of a state tree; raises ``StateError``."""
        self.open = restore_all(tree, rules)
        self._last_ns = integer(tree, "last_ns") or None

    def finish(self) -> list[CaseChange]:
        """Return the last state of the cases that are open when watching ends."""
        return [(FindingChange.CHANGED, case) for case in self.open]

    def _skip_gap(self, now_ns: int) -> list[CaseChange]:
        """Count seconds without a slice; forget what is too old to open a case."""
        last_ns, self._last_ns = self._last_ns, now_ns
        if last_ns is None:
            return []
        if now_ns <= last_ns:  # the clock was set back
            self._recent.clear()
        span_ns = self._settings.of * NS_PER_SECOND
        while self._recent and now_ns - self._recent[0].verdict.start_ns >= span_ns:
            self._recent.popleft()
        gap_s = (now_ns - last_ns) // NS_PER_SECOND - 1
        for case in self.open:
            case.lifecycle = case.lifecycle.after_gap(gap_s, self._lifecycle)
        return self._close() if self.open else []

    def _close(self) -> list[CaseChange]:
        ended = [case for case in self.open if case.lifecycle.is_closed]
        if ended:
            self.open = [case for case in self.open if not case.lifecycle.is_closed]
            self._subtract_claims(self._recent)
        return [(FindingChange.RESOLVED, case) for case in ended]

    def _observe_all(self, recent: _RecentSecond, present: Present) -> list[CaseChange]:
        """Add a second to every open case."""
        changes: list[CaseChange] = []
        for case in self.open:
            case.see(recent.verdict, present)
        for case in self.open:
            before = case.episode.reported_state
            self._observe(case, recent, present)
            if case.episode.reported_state != before:
                changes.append((FindingChange.CHANGED, case))
        for case in filter(self._relations.is_replaced, self.open):
            case.end_before_return()
        ended = self._close()
        over = {id(case) for _, case in ended}
        return [(change, case) for change, case in changes if id(case) not in over] + ended

    def _take_effects(self, recent: _RecentSecond) -> None:
        """Add to young cases the signatures that they explain, before these hold.

        One that flickers at its threshold from the onset on may hold minutes later.
        """
        for case in self.open:
            age_ns = recent.verdict.start_ns - case.episode.first_ns
            if case.is_active and age_ns <= SYMPTOM_DELAY_S * NS_PER_SECOND:
                unowned = [m for m in recent.verdict.present if not self._is_owned(m)]
                case.explain(self._relations.effects(case, unowned), recent.verdict.start_ns)

    def _spread(self, recent: _RecentSecond) -> list[CaseChange]:
        """Add to open cases the subsystems whose score is only that of their claims."""
        explained = recent.verdict.above_threshold() - recent.over()
        lasting = {s for s in explained if self._seconds_above(s) >= self._settings.need}
        changes = []
        for case in self.open:
            new = sorted(lasting - set(case.episode.subsystems))
            if not (new and case.is_active):
                continue
            claimed = case.claims.mask(recent.second.plan)
            own = np.where(claimed, recent.second.weighted_excess, 0.0)
            ratios = self._scores.part(recent.verdict, recent.second, own)
            affected = [s for s in new if ratios.get(s, 0.0) > 1]
            case.episode.subsystems += affected
            changes += [(FindingChange.CHANGED, case)] if affected else []
        return changes

    def _seconds_above(self, subsystem: Subsystem) -> int:
        return sum(each.verdict.score_ratios.get(subsystem, 0.0) > 1 for each in self._recent)

    def _observe(self, case: Case, recent: _RecentSecond, present: Present) -> None:
        verdict, second = recent.verdict, recent.second
        claimed = self._claimed(second, case)
        # consequences of a fault reach other columns and subsystems within seconds
        if case.is_young(verdict.start_ns) and verdict.anomalous:
            self._take_moved(case, second, claimed, second.plan)
        others = claimed if case.is_certain else self._claimed(second, case, only_certain=True)
        observation, ratios = case.observation(verdict, second, self._scores, others)
        if observation is Observation.ACTIVE and self._is_taken_over(case, second):
            observation = Observation.CALM
        case.lifecycle = case.lifecycle.after(observation, self._lifecycle)
        case.release_transient(second, self._scores)
        case.is_active = observation is Observation.ACTIVE
        if case.is_active:
            case.add(case.part_of(second, self._scores, claimed), ratios, present)
        learned = case.claims.update(second)
        case.is_learned = case.is_learned or any(label in case.moved for label in learned)

    def _is_taken_over(self, case: Case, second: ObservedSecond) -> bool:
        """Return whether the culprit of a case is back, and another case explains its columns."""
        if case.present or case.is_young(second.start_ns):
            return False
        others = [other for other in self.open if other is not case]
        if not others or not self._relations.is_culprit_back(case):
            return False
        moved = case.moved.mask(second.plan)
        return any(self._explains(other, moved, second.plan) for other in others)

    def _explains(self, case: Case, moved: Bools, plan: ColumnPlan) -> bool:
        """Return whether columns moved with a case, too, or its cause describes their metrics."""
        if (case.moved.mask(plan) & moved).any():
            return True
        described = self._relations.described_metrics(case)
        return any(plan.columns[i].metric.name in described for i in np.flatnonzero(moved))

    def _take_moved(
        self, case: Case, second: ObservedSecond, claimed: Bools, plan: ColumnPlan
    ) -> None:
        """Add to a case what moves in a second and belongs to no other; ``plan`` is that of now."""
        moved = np.flatnonzero((second.weighted_excess > MOVED) & ~claimed).tolist()
        case.take([second.plan.columns[index] for index in moved], plan, self._scores)

    def _claimed(
        self, second: ObservedSecond, but: Case | None = None, *, only_certain: bool = False
    ) -> Bools:
        """Return the columns that open cases account for, without those of one case.

        ``only_certain`` counts cases with a signature that is present now.
        """
        claimed = np.zeros(len(second.plan.columns), np.bool_)
        for case in self.open:
            if case is not but and (case.present or not only_certain):
                claimed |= case.claims.mask(second.plan)
        return claimed

    def _subtract_claims(self, seconds: Iterable[_RecentSecond]) -> None:
        """Compute what open cases do not explain of these seconds."""
        for recent in seconds:
            verdict, second = recent.verdict, recent.second
            recent.unowned = [m for m in verdict.present if not self._is_owned(m)]
            if not self.open or not verdict.above_threshold():
                recent.residual = verdict.score_ratios
                continue
            claimed = self._claimed(second)
            rest = np.where(claimed, 0.0, second.weighted_excess)
            # what is over without a column of any case stays over
            recent.residual = (
                self._scores.part(verdict, second, rest) if claimed.any() else verdict.score_ratios
            )

    def _is_owned(self, match: SignatureMatch) -> bool:
        return any(case.owns(match.key) for case in self.open)

    def _open_signatures(self, recent: _RecentSecond) -> list[CaseChange]:
        """Open or extend a case for each signature that holds and belongs to none."""
        changes = []
        for match in recent.verdict.sustained:
            if not self._is_owned(match):
                changes += self._open(recent, {match.rule.subsystem}, match)
        return changes

    def _open_score(self, recent: _RecentSecond) -> list[CaseChange]:
        """Open or extend a case if the residual score was too high for long enough."""
        over = recent.over()
        if not over:
            return []
        above = sum(1 for each in self._recent if each.over() & over)
        far = sum(1 for each in self._recent if each.over(self._settings.far) & over)
        enough = above >= self._settings.need or far >= self._settings.need_far
        return self._open(recent, over) if enough else []

    def _open(
        self, recent: _RecentSecond, subsystems: set[Subsystem], match: SignatureMatch | None = None
    ) -> list[CaseChange]:
        case = self._start(recent, subsystems | recent.subsystems(), match, list(self._recent))
        self._begin(case)
        self._suspected = False
        owner = self._relations.owner(case, self.open, recent.verdict.start_ns)
        if owner is None and len(self.open) >= self._settings.most_open:
            return []
        if owner is None:
            self.open.append(case)
            self._account_for(case, recent)
            return [(FindingChange.OPENED, case)]
        known, relation = owner
        before = known.episode.reported_state
        known.absorb(case, as_symptom=relation is Relation.SYMPTOM)
        self._account_for(known, recent)
        changed = known.episode.reported_state != before
        return [(FindingChange.CHANGED, known)] if changed else []

    def _account_for(self, case: Case, recent: _RecentSecond) -> None:
        """Subtract what a case explains from now on, also from the last seconds."""
        self._claim_described(case, recent.second)
        self._subtract_claims(self._recent)

    def _claim_described(self, case: Case, second: ObservedSecond) -> None:
        """Claim what the cause of a case describes.

        What a signature rests on belongs to it, even if an open case claimed it when both began.
        """
        rule = self._relations.cause(case)
        if rule is None:
            return
        names = own_metrics(rule)
        own = [column.label for column in second.plan.columns if column.metric.name in names]
        for other in self.open:
            if other is not case and case.is_certain:
                other.release([label for label in own if label not in other.described])
        case.describe(rule, second.plan, self._scores, ~self._claimed(second, case))

    def _start(
        self,
        recent: _RecentSecond,
        subsystems: set[Subsystem],
        match: SignatureMatch | None,
        span: Sequence[_RecentSecond],
    ) -> Case:
        """Return a case that begins with its onset in ``span``."""
        now_ns = recent.verdict.start_ns
        anomalous = (each for each in span if self._shows(each, subsystems, match))
        first_ns = _onset([each.verdict.start_ns for each in anomalous] or [now_ns])
        episode = Episode(first_ns, now_ns + NS_PER_SECOND, Subsystem.CPU, opened_ns=now_ns)
        case = Case(episode)
        if match is not None:
            case.keys.add(match.key)
            episode.add_matches([match])
            episode.present_ns[match.rule.name] = now_ns
        for each in span:
            if each.verdict.start_ns >= first_ns:
                self._add_to_new(case, each, match, recent.second.plan)
        episode.subsystem = (
            episode.primary_subsystem()
            if episode.subsystems
            else (match.rule.subsystem if match else Subsystem.CPU)
        )
        return case

    def _shows(
        self, each: _RecentSecond, subsystems: set[Subsystem], match: SignatureMatch | None
    ) -> bool:
        """Return whether a second shows what a new case is about."""
        if match is not None and any(other.key == match.key for other in each.unowned):
            return True
        return bool(each.subsystems() & subsystems)

    def _add_to_new(
        self, case: Case, each: _RecentSecond, match: SignatureMatch | None, plan: ColumnPlan
    ) -> None:
        """Add an earlier second to a case that opens; ``plan`` is that of now."""
        second = each.second
        claimed = self._claimed(second)
        if match is not None:
            names = own_metrics(match.rule)
            claimed &= np.array([c.metric.name not in names for c in second.plan.columns])
        self._take_moved(case, second, claimed, plan)
        ratios = {s: each.residual.get(s, 0.0) for s in each.subsystems()}
        present = {match.key: match for match in each.verdict.present}
        case.add(only_of(second, ~claimed, second.weighted_excess), ratios, present)

    def _suspect(self, recent: _RecentSecond) -> list[CaseChange]:
        """Report a suspicion once, until a second passes without any."""
        unexplained = recent.subsystems()
        if not unexplained:
            self._suspected = False
            return []
        span = [
            each
            for each in list(self._recent)[-self._settings.suspect_of :]
            if each.subsystems() & unexplained
        ]
        if self._suspected or len(span) < self._settings.suspect:
            return []
        self._suspected = True
        return [(FindingChange.SUSPECTED, self._start(recent, unexplained, None, span))]


def _onset(anomalous: Sequence[int]) -> int:
    """Return the first of these times (ns) that belongs to the fault.

    Two seconds without a sign separate it from what was before, if no more signs were before.
    """
    total = len(anomalous)
    after_pauses = (
        k for k in range(total // 2, 0, -1) if anomalous[k] - anomalous[k - 1] >= _APART_NS
    )
    return anomalous[next(after_pauses, 0)]
