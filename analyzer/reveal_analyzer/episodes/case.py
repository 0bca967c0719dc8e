"""One case: a cause that was found on a node, with everything that is kept until it ends."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from reveal_analyzer.arrays import Bools
from reveal_analyzer.derive.columns import Column, ColumnPlan
from reveal_analyzer.episodes.case_scores import CaseScores, Ratios
from reveal_analyzer.episodes.claims import Claims, ColumnSet, TransientColumns
from reveal_analyzer.episodes.episode import MOST_RATIO, Episode, SecondVerdict
from reveal_analyzer.episodes.lifecycle import Lifecycle, Observation
from reveal_analyzer.episodes.measured import MeasuredLosses
from reveal_analyzer.episodes.trace import AnyFloats, ObservedSecond, Trace, only_of
from reveal_analyzer.hypotheses.model import HypothesisRule
from reveal_analyzer.hypotheses.signature_matcher import CaseKey, SignatureMatch
from reveal_analyzer.live.reference import ColumnReference
from reveal_analyzer.subjects.case_subjects import CaseSubjects
from reveal_analyzer.subjects.history import MOST_ACTIVE_S
from reveal_contract.finding import Method, Severity
from reveal_contract.metric import Scope
from reveal_contract.time_units import NS_PER_SECOND

MOVED = 1.0  # weighted excess in spreads from which a column belongs to the harm of a case
LONGEST_S = 24 * 3600
GROWS_S = 5  # after the opening: what moves until then belongs to the case
PAUSE_S = 3  # of calm, after which what is active again may be another fault
SYMPTOM_DELAY_S = 15  # from the beginning of a cause to that of its last symptom
SYMPTOM_ABSENT_S = 15  # after which a signature is no symptom of this case any more
Methods = tuple[Method, ...]
Present = Mapping[CaseKey, SignatureMatch]


@dataclass
class Case:
    """A cause that is open.

    ``keys`` are the certain signatures that keep it active, ``explained`` those that are its
    symptoms.  ``moved`` are the columns that left their baseline when it began, ``described`` those
    that the rule of its cause names; ``reference`` is what was normal for them before.
    ``transient`` are those of ``moved`` that no certain signature explains and that have not been
    back yet.  ``active`` are the starts of its last active seconds.
    """

    episode: Episode
    trace: Trace = field(default_factory=Trace)
    methods: Methods = ()
    notes: tuple[str, ...] = ()
    reported_culprits: tuple[object, ...] = ()
    lifecycle: Lifecycle = field(default_factory=Lifecycle)
    keys: set[CaseKey] = field(default_factory=set)
    explained: set[CaseKey] = field(default_factory=set)
    moved: ColumnSet = field(default_factory=ColumnSet)
    described: ColumnSet = field(default_factory=ColumnSet)
    claims: Claims = field(default_factory=Claims)
    transient: TransientColumns | None = None
    reference: ColumnReference | None = None
    present: bool = False  # one of its signatures, in this second
    is_active: bool = True  # in this second
    is_learned: bool = False  # its level became the node's new normal
    subjects: CaseSubjects | None = None
    active: deque[int] = field(default_factory=lambda: deque(maxlen=MOST_ACTIVE_S))
    reported_severity: Severity | None = None
    reported_strength: float | None = None  # None after a restart
    other_severity_s: int = 0  # seconds for which its severity has been another
    losses: MeasuredLosses = field(default_factory=MeasuredLosses)
    related: dict[str, None] = field(default_factory=dict)  # ids of findings open at the time
    _own: tuple[ColumnPlan, Bools] | None = None
    _conditions: ColumnSet = field(default_factory=ColumnSet)

    @property
    def is_certain(self) -> bool:
        return bool(self.keys)

    @property
    def rules(self) -> set[str]:
        """Names of the rules whose signatures keep it active."""
        return {key.rule for key in self.keys}

    @property
    def is_measured(self) -> bool:
        """Whether the ledger measures its cause."""
        matches = self.episode.matches
        return any(name in matches and matches[name].rule.is_measured for name in self.rules)

    def age_s(self, now_ns: int) -> int:
        """Return the seconds since it opened."""
        return (now_ns - self.episode.opened_ns) // NS_PER_SECOND

    def owns(self, key: CaseKey) -> bool:
        """Return whether a signature belongs to this case, as its cause or as a symptom."""
        return key in self.keys or key in self.explained

    def observation(
        self,
        verdict: SecondVerdict,
        second: ObservedSecond,
        scores: CaseScores,
        others: Bools,
    ) -> tuple[Observation, Ratios]:
        """Return what a second shows of this case, and its score ratios above 1.

        ``others`` marks the columns that other cases account for.
        """
        own = self.moved.mask(second.plan) & ~others
        above = self._above(
            verdict, second, scores, np.where(own, self.weighted(second, scores), 0)
        )
        if self.present:
            return Observation.ACTIVE, above
        if self.is_measured:  # what else moves is not what the ledger has measured
            return Observation.CALM if verdict.has_ledger else Observation.UNOBSERVED, {}
        if above:
            return Observation.ACTIVE, above
        if self._is_unobserved(second):
            return Observation.UNOBSERVED, {}
        if self._is_old(second):
            kept = np.where(own, scores.deviation(second, self.reference), 0)
            if self._above(verdict, second, scores, kept):
                return Observation.ACCEPTED, {}
        return Observation.CALM, {}

    def _above(
        self, verdict: SecondVerdict, second: ObservedSecond, scores: CaseScores, own: AnyFloats
    ) -> Ratios:
        """Return the score ratios above 1 of the weighted excess of this case."""
        ratios = scores.against(verdict, second, self.reference, own)
        return {subsystem: ratio for subsystem, ratio in ratios.items() if ratio > 1}

    def _is_old(self, second: ObservedSecond) -> bool:
        """Return whether its level has lasted for so long that it counts as normal."""
        return self.age_s(second.start_ns) >= LONGEST_S

    def weighted(self, second: ObservedSecond, scores: CaseScores) -> AnyFloats:
        """Return the weighted excess against the reference from before this case.

        After a day the level that the live score has learned is how the node is.
        """
        reference = None if self._is_old(second) else self.reference
        return scores.deviation(second, reference)

    def part_of(self, second: ObservedSecond, scores: CaseScores, others: Bools) -> ObservedSecond:
        """Return a second in which only the columns of this case left their baseline.

        While the case is young these are all that no other case accounts for.  A symptom that moves
        long after the onset is that of another fault, which has no case yet.
        """
        moved = self.moved.mask(second.plan)
        if self.is_young(second.start_ns):
            chosen = ~others
        else:
            described = self.described.mask(second.plan)
            if self.age_s(second.start_ns) > SYMPTOM_DELAY_S:
                described = described & self._own_mask(second.plan)
            chosen = (moved | described) & ~others
        weighted = np.where(moved, self.weighted(second, scores), second.weighted_excess)
        return only_of(second, chosen, weighted)

    def _own_mask(self, plan: ColumnPlan) -> Bools:
        """Return which columns its causes show themselves in, without their symptoms."""
        if self._own is None or self._own[0] is not plan:
            matches = self.episode.matches
            rules = [matches[name].rule for name in self.rules if name in matches]
            own = frozenset[str]().union(*map(own_metrics, rules))
            mask = np.array([column.metric.name in own for column in plan.columns], np.bool_)
            # evidence without a signature is the harm itself
            self._own = plan, mask if rules else np.ones(len(plan.columns), np.bool_)
        return self._own[1]

    def since_return(self) -> list[int]:
        """Return its active seconds since a pause, calm or not read; none without one."""
        seconds = list(self.active)
        for k in range(len(seconds) - 1, 0, -1):
            if seconds[k] - seconds[k - 1] > PAUSE_S * NS_PER_SECOND:
                return seconds[k:]
        return []

    def end_before_return(self) -> None:
        """End it with the last active second before it was calm for a while."""
        for _ in self.since_return():
            self.active.pop()
        self.episode.last_ns = self.active[-1] + NS_PER_SECOND
        self.lifecycle = self.lifecycle.ended()

    def is_young(self, now_ns: int) -> bool:
        """Return whether what moves now belongs to this case."""
        return self.age_s(now_ns) <= GROWS_S

    def add(self, part: ObservedSecond, ratios: Ratios, present: Present) -> None:
        """Count an active second, of which ``part`` is what belongs to this case."""
        matches = [present[key] for key in self.keys if key in present]
        self.losses.add(match for key, match in present.items() if self.owns(key))
        peak = min(max(ratios.values(), default=0.0), MOST_RATIO)
        strength = max((match.value for match in matches), default=0.0) if self.keys else peak
        # seconds in which a fault wears off tell nothing of its values
        if matches or not self.keys or self.is_young(part.start_ns):
            self.trace.add(part, peak, float(np.nan_to_num(strength)), subject_values(matches))
        anomalous = dict(ratios)
        for match in matches:
            anomalous.setdefault(match.rule.subsystem, 0.0)
        self.episode.add(part.start_ns, anomalous)
        self.active.append(part.start_ns)
        self.episode.peak = self.trace.peak

    def see(self, verdict: SecondVerdict, present: Present) -> None:
        """Note which of its signatures are present, and which hold."""
        if self.is_measured:
            self._prefer_measured()
        self.present = any(key in present for key in self.keys)
        sustained = {match.key for match in verdict.sustained}
        for key, match in present.items():
            if self.owns(key):
                self.episode.present_ns[key.rule] = verdict.start_ns
                if key in sustained:
                    self.episode.add_matches([match])
        # when it comes back later, it may have another cause
        self.explained -= {key for key in self.explained if self._is_gone(key, verdict.start_ns)}

    def _prefer_measured(self) -> None:
        """Keep as its own only what the ledger measures of what that explains."""
        own = [match for name, match in self.episode.matches.items() if name in self.rules]
        measured = [match.rule for match in own if match.rule.is_measured]
        for match in own:
            if any(rule.explains(match.rule) for rule in measured):
                keys = {key for key in self.keys if key.rule == match.rule.name}
                self.keys -= keys
                self.explained |= keys

    def explain(self, keys: Collection[CaseKey], now_ns: int) -> None:
        """Take signatures that are present now as symptoms of this case."""
        self.explained.update(keys)
        self.episode.present_ns |= dict.fromkeys((key.rule for key in keys), now_ns)

    def _is_gone(self, key: CaseKey, now_ns: int) -> bool:
        """Return whether a signature has been absent for long."""
        last_ns = self.episode.present_ns.get(key.rule, self.episode.last_ns)
        return now_ns - last_ns > SYMPTOM_ABSENT_S * NS_PER_SECOND

    def take(self, columns: Sequence[Column], plan: ColumnPlan, scores: CaseScores) -> None:
        """Add columns that moved with the case, and keep what was normal for them."""
        if not columns:
            return
        self.claims.add(column.label for column in columns)
        # a sum over subjects says nothing of a single one
        single = self._is_of_subject
        own = [c.label for c in columns if not (single and c.metric.scope is Scope.SUBJECT)]
        if self.moved.add(own):
            self._keep_reference(self.moved, plan, scores)

    def describe(
        self, rule: HypothesisRule, plan: ColumnPlan, scores: CaseScores, free: Bools
    ) -> None:
        """Claim the columns that the rule of its cause describes; ``free`` may be claimed."""
        instances = {key.instance for key in self.keys if key.rule == rule.name} - {""}
        metrics = rule.described_metrics() | rule.required_metrics()
        labels = [
            column.label
            for column, is_free in zip(plan.columns, free.tolist(), strict=True)
            if is_free and column.metric.name in metrics and _is_of(column, instances)
        ]
        self.claims.add(labels)
        self.described.add(labels)
        self._keep_reference(self._condition_columns(), plan, scores)

    def release_transient(self, second: ObservedSecond, scores: CaseScores) -> None:
        """Give up columns that its signatures do not explain, once they are back.

        They moved in the seconds in which it began.  Whatever moves them later is not this cause.
        """
        if not self.is_certain or self.is_young(second.start_ns):
            return
        if self.transient is None:
            self.transient = TransientColumns(self._unexplained(second.plan))
        if len(self.transient):
            back = self.transient.update(second, self.weighted(second, scores))
            if back:
                self.release(back)

    def _unexplained(self, plan: ColumnPlan) -> list[str]:
        """Return the labels of moved columns in subsystems that its signatures are not about."""
        rules = [match.rule for match in self.episode.matches.values()]
        subsystems = {rule.subsystem for rule in rules}
        metrics = frozenset[str]().union(
            *(rule.described_metrics() | rule.required_metrics() for rule in rules)
        )
        indices = self.moved.indices(plan)
        moved = [plan.columns[index] for index in indices[indices >= 0].tolist()]
        return [
            column.label
            for column in moved
            if column.metric.subsystem not in subsystems and column.metric.name not in metrics
        ]

    def release(self, labels: Sequence[str]) -> None:
        """Give up columns that turned out to belong to another cause."""
        self.moved.remove(labels)
        self.claims.release(labels)

    def absorb(self, other: Case, *, as_symptom: bool) -> None:
        """Take over another case that turned out to be a part of this one."""
        self.episode.absorb(other.episode)
        (self.explained if as_symptom else self.keys).update(other.keys)
        self.explained |= other.explained
        self.claims.add(other.claims.labels)
        self.losses.absorb(other.losses)
        if not as_symptom:
            self.moved.add(other.moved.labels)
            if self.reference is None:
                self.reference = other.reference
            elif other.reference is not None:
                self.reference = self.reference.extended(other.reference)

    def _keep_reference(self, columns: ColumnSet, plan: ColumnPlan, scores: CaseScores) -> None:
        indices = columns.indices(plan)
        known = set(self.reference.labels) if self.reference else set()
        new = np.array(
            [index for index in indices if index >= 0 and plan.labels[index] not in known], np.intp
        )
        if not new.size:
            return
        added = scores.reference(new)
        if added is not None:
            self.reference = added if self.reference is None else self.reference.extended(added)

    def condition_labels(self) -> list[str]:
        """Return the columns that met the conditions of its own signatures."""
        names = self.rules
        return [
            column.label
            for name, match in self.episode.matches.items()
            if name in names
            for column in match.columns
        ]

    def _condition_columns(self) -> ColumnSet:
        """Return ``condition_labels`` as columns, which keep their indices between seconds."""
        labels = tuple(dict.fromkeys(self.condition_labels()))
        if labels != self._conditions.labels:
            self._conditions = ColumnSet(labels)
        return self._conditions

    @property
    def _is_of_subject(self) -> bool:
        """Whether its signature is that of a single pod or other subject."""
        return any(
            column.metric.scope is Scope.SUBJECT
            for key in self.keys
            if key.instance and key.rule in self.episode.matches
            for column in self.episode.matches[key.rule].columns[:1]
        )

    def _is_unobserved(self, second: ObservedSecond) -> bool:
        """Return whether nothing was read of its signature, or of the columns that moved.

        Where the device of a signature is gone, what else moved decides.
        """
        # a single subject has no column: that it is gone is an end, not a gap
        if self._is_of_subject:
            return False
        conditions = self._condition_columns().indices(second.plan)
        there = conditions[conditions >= 0]
        if not there.size:
            moved = self.moved.indices(second.plan)
            if not moved.size and not conditions.size:
                return False
            there = moved[moved >= 0]
        if second.unobserved.size:
            there = there[~second.unobserved[there]]
        return not there.size


def subject_values(matches: Iterable[SignatureMatch]) -> dict[Column, float]:
    """Return the values of columns of single subjects."""
    return {
        match.columns[0]: match.value
        for match in matches
        if match.columns and match.columns[0].metric.scope is Scope.SUBJECT and match.instance
    }


def own_metrics(rule: HypothesisRule) -> frozenset[str]:
    """Return the metrics that a cause shows itself in, without its symptoms elsewhere."""
    return rule.required_metrics() | {item.metric for item in rule.expects}


def _is_of(column: Column, instances: set[str]) -> bool:
    """Return whether a column is of one of these devices, or of no device at all."""
    return not instances or column.instance in instances or not column.instance
