"""Cases of a node: suspected, opened, extended, lasting, side by side, and resolved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from reveal_analyzer.arrays import Floats, Floats32, Indices
from reveal_analyzer.derive.columns import column_plan
from reveal_analyzer.episodes.attribution import EpisodeRecord
from reveal_analyzer.episodes.case import Case
from reveal_analyzer.episodes.case_scores import CaseScores
from reveal_analyzer.episodes.episode import SecondVerdict
from reveal_analyzer.episodes.relations import Relations
from reveal_analyzer.episodes.trace import ObservedSecond
from reveal_analyzer.episodes.tracker import CaseChange, CaseTracker
from reveal_analyzer.hypotheses.loader import load
from reveal_analyzer.hypotheses.model import HypothesisRule
from reveal_analyzer.hypotheses.signature_matcher import Harmed, SignatureMatch
from reveal_analyzer.live.reference import ColumnReference
from reveal_analyzer.subjects.history import SubjectHistory
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.finding import FindingChange, Resolution, State
from reveal_contract.metric import Kind, Subsystem
from reveal_contract.time_units import NS_PER_SECOND

CPU, MEMORY, GPU, NETWORK = Subsystem.CPU, Subsystem.MEMORY, Subsystem.GPU, Subsystem.NETWORK
RULES = {rule.name: rule for rule in load()}
OOM_KILL = SignatureMatch(RULES["OOMKill"], ())
STEAL, DELAY, DEFICIT = "cpu.steal", "cpu.run_delay", "gpu.clock_deficit"
DROPS, RETRANSMITTED = "network.softnet.dropped", "network.tcp.retransmit_share"
OF = {CPU: STEAL, GPU: DEFICIT}
METRICS = (STEAL, DELAY, DEFICIT, DROPS, "network.tcp.retrans_segs", "network.tcp.out_segs",
           "memory.pressure.some")  # fmt: skip
PLAN = column_plan(ChannelTable(tuple(Channel(name, "", Kind.COUNTER) for name in METRICS), ()))
WIDTH = len(PLAN.columns)
CALM: dict[Subsystem, float] = {}


def weights(moved: Mapping[str, float]) -> Floats:
    return np.array([moved.get(column.metric.name, 0.0) for column in PLAN.columns])


class Learned:
    """A live score that has learned the present level: cases see ``deviations`` from before."""

    plan = PLAN

    def __init__(self) -> None:
        self.deviations: Floats = np.zeros(WIDTH)

    def reference(self, columns: Indices) -> ColumnReference:
        none = np.zeros(columns.size)
        labels = tuple(PLAN.labels[index] for index in columns)
        bounds = np.zeros((3, 4, columns.size), np.float32)
        own = np.zeros((2, columns.size), np.float32)
        return ColumnReference(labels, bounds, own, none, none, np.full(len(Subsystem), 10.0))

    def deviation(self, reference: ColumnReference) -> Floats32:
        indices = [PLAN.labels.index(label) for label in reference.labels]
        return self.deviations[indices].astype(np.float32)

    def placed(self, reference: ColumnReference, weighted: Floats32) -> Floats32:
        whole = np.zeros(WIDTH, np.float32)
        whole[[PLAN.labels.index(label) for label in reference.labels]] = weighted
        return whole

    def over(self, weighted: Floats32, thresholds: Floats | None = None) -> dict[Subsystem, float]:
        worst = dict.fromkeys(Subsystem, 0.0)
        for column, value in zip(PLAN.columns, weighted.tolist(), strict=True):
            subsystem = column.metric.subsystem
            worst[subsystem] = max(worst[subsystem], value / 10.0)
        return worst


class Clock:
    """Feeds a tracker second by second; ``log`` is (second, change, subsystem)."""

    def __init__(
        self,
        rules: Iterable[HypothesisRule] = (),
        baselines: Learned | None = None,
        kind: type[Relations] = Relations,
    ) -> None:
        relations = kind(list(rules), SubjectHistory(), record)
        self.tracker = CaseTracker(CaseScores(baselines), relations)
        self.second = 0
        self.log: list[tuple[int, str, Subsystem]] = []

    def run(
        self,
        seconds: int,
        ratios: Mapping[Subsystem, float] = CALM,
        sustained: Iterable[SignatureMatch] = (),
        moved: Mapping[str, float] | None = None,
        unobserved: bool = False,
        present: Iterable[SignatureMatch] = (),
    ) -> list[CaseChange]:
        """Run seconds; without ``moved`` one column of each subsystem explains its ratio.

        ``present`` match, but not for long enough yet.
        """
        if moved is None:
            moved = {OF[subsystem]: 10 * ratio for subsystem, ratio in ratios.items()}
        changes: list[CaseChange] = []
        for _ in range(seconds):
            matches = list(sustained), [*sustained, *present]
            found = self._push(ratios, matches, weights(moved), unobserved)
            self.log += [(self.second, change.value, c.episode.subsystem) for change, c in found]
            changes += found
            self.second += 1
        return changes

    def _push(
        self,
        ratios: Mapping[Subsystem, float],
        matches: tuple[list[SignatureMatch], list[SignatureMatch]],
        weighted: Floats,
        unobserved: bool,
    ) -> list[CaseChange]:
        start_ns = self.second * NS_PER_SECOND
        excess = np.stack([weighted, np.zeros(WIDTH)])
        missing = np.full(WIDTH, unobserved)
        observed = ObservedSecond(
            start_ns, PLAN, np.ones(WIDTH), excess, weighted, np.zeros(WIDTH), missing
        )
        return self.tracker.update(SecondVerdict(start_ns, ratios, *matches), observed)

    def changes_of(self, change: FindingChange) -> list[tuple[int, Subsystem]]:
        return [(second, where) for second, name, where in self.log if name == change.value]


def record(case: Case) -> EpisodeRecord:
    return EpisodeRecord("n1", case.episode, case.trace, (), State.OPEN)


def match_of(rule: str, metric: str, instance: str = "") -> SignatureMatch:
    columns = tuple(column for column in PLAN.columns if column.metric.name == metric)
    return SignatureMatch(RULES[rule], columns, instance, 1.0)


THROTTLED = SignatureMatch(RULES["CPUQuotaThrottling"], (), "a", 5e8)
LOSS = match_of("PacketLoss", RETRANSMITTED)


def test_a_score_above_its_threshold_is_suspected_then_opened_then_resolved() -> None:
    clock = Clock()
    clock.run(6, {CPU: 2.0})
    clock.run(15)
    assert clock.log == [(1, "Suspected", CPU), (4, "Opened", CPU), (15, "Resolved", CPU)]


def test_a_score_far_above_its_threshold_needs_fewer_seconds() -> None:
    clock = Clock()
    clock.run(5, {CPU: 4.0})
    assert clock.changes_of(FindingChange.OPENED) == [(3, CPU)]


def test_a_score_equal_to_its_threshold_is_not_anomalous() -> None:
    clock = Clock()
    clock.run(30, {CPU: 1.0})
    assert clock.log == []


def test_seconds_need_not_be_adjacent() -> None:
    clock = Clock()
    for _ in range(5):
        clock.run(1, {CPU: 2.0})
        clock.run(1)
    assert (8, "Opened", CPU) in clock.log


def test_a_suspicion_is_reported_again_only_after_a_calm_second() -> None:
    clock = Clock()
    clock.run(2, {CPU: 2.0})
    clock.run(3)
    clock.run(2, {CPU: 2.0})
    assert [entry[:2] for entry in clock.log] == [(1, "Suspected"), (6, "Suspected")]


def test_a_sustained_signature_opens_immediately() -> None:
    clock = Clock()
    ((change, case),) = clock.run(1, sustained=[OOM_KILL])
    assert (change, case.episode.subsystem) == (FindingChange.OPENED, MEMORY)
    assert list(case.episode.matches) == ["OOMKill"]


def test_a_subsystem_joins_soon_after_the_opening_and_opens_its_own_later() -> None:
    early, late = Clock(), Clock()
    early.run(6, {CPU: 2.0})
    early.run(10, {CPU: 2.0, GPU: 2.0})
    assert early.log[-1] == (6, "Changed", CPU)
    late.run(20, {CPU: 2.0})
    late.run(10, {CPU: 2.0, GPU: 2.0})
    assert late.log[-1] == (24, "Opened", GPU)


def test_consequences_of_a_moment_belong_to_it() -> None:
    clock = Clock()
    clock.run(1, sustained=[OOM_KILL])
    clock.run(8, {CPU: 2.0})
    assert clock.changes_of(FindingChange.OPENED) == [(0, MEMORY)]
    (case,) = clock.tracker.open
    assert case.episode.subsystems == [MEMORY, CPU]


def test_the_subsystem_of_most_weight_is_primary() -> None:
    clock = Clock()
    clock.run(5, {CPU: 1.5, GPU: 3.0})
    assert clock.tracker.open[0].episode.subsystem is GPU


def test_a_learned_level_stays_open_until_the_earlier_level_returns() -> None:
    baselines = Learned()
    clock = Clock(baselines=baselines)
    baselines.deviations = weights({STEAL: 40.0})
    clock.run(5, {CPU: 4.0}, moved={STEAL: 40.0})
    # the live score has learned it: nothing is above a threshold any more
    clock.run(3600)
    assert [change for _, change, _ in clock.log] == ["Suspected", "Opened"]
    assert clock.tracker.open[0].is_learned
    baselines.deviations = weights({})
    assert clock.run(9) == []
    ((change, case),) = clock.run(1)
    assert (change, case.lifecycle.resolution) == (FindingChange.RESOLVED, Resolution.ENDED)
    assert case.episode.last_ns == 3605 * NS_PER_SECOND


def test_a_second_fault_of_the_same_subsystem_opens_and_ends_alone() -> None:
    clock = Clock()
    clock.run(60, {CPU: 2.0}, moved={STEAL: 20.0})
    clock.run(40, {CPU: 4.0}, moved={STEAL: 20.0, DELAY: 30.0})
    assert clock.changes_of(FindingChange.OPENED) == [(4, CPU), (64, CPU)]
    first, second = clock.tracker.open
    clock.run(20, {CPU: 2.0}, moved={STEAL: 20.0})
    assert clock.tracker.open == [first]
    assert second.episode.last_ns == 100 * NS_PER_SECOND
    clock.run(10)
    assert first.episode.last_ns == 120 * NS_PER_SECOND


def test_the_first_fault_ends_while_the_second_goes_on() -> None:
    clock = Clock()
    clock.run(60, {CPU: 2.0}, moved={STEAL: 20.0})
    clock.run(30, {CPU: 4.0}, moved={STEAL: 20.0, DELAY: 30.0})
    first, second = clock.tracker.open
    clock.run(20, {CPU: 3.0}, moved={DELAY: 30.0})
    assert clock.tracker.open == [second]
    assert first.episode.last_ns == 90 * NS_PER_SECOND


def test_the_same_fault_again_is_another_case() -> None:
    clock = Clock()
    for _ in range(3):
        clock.run(20, {CPU: 2.0})
        clock.run(30)
    assert clock.changes_of(FindingChange.OPENED) == [(4, CPU), (54, CPU), (104, CPU)]
    assert clock.changes_of(FindingChange.RESOLVED) == [(29, CPU), (79, CPU), (129, CPU)]


def test_each_throttled_pod_is_a_case_of_its_own_unless_they_began_together() -> None:
    first, second = (
        SignatureMatch(RULES["CPUQuotaThrottling"], (), pod, 5e8) for pod in ("a", "b")
    )
    apart, together = Clock(RULES.values()), Clock(RULES.values())
    apart.run(30, sustained=[first])
    apart.run(30, sustained=[first, second])
    apart.run(30, sustained=[second])
    assert apart.changes_of(FindingChange.OPENED) == [(0, CPU), (30, CPU)]
    assert apart.changes_of(FindingChange.RESOLVED) == [(69, CPU)]
    together.run(1, sustained=[first])
    together.run(30, sustained=[first, second])
    assert together.changes_of(FindingChange.OPENED) == [(0, CPU)]


def test_what_the_ledger_measures_names_a_score_that_began_with_it() -> None:
    """The score may open first, with a guess at its cause."""
    taken = SignatureMatch(RULES["CPUTakenByNeighbor"], (), "a", 5e8, (Harmed("b", 0.4),))
    together, apart = Clock(RULES.values()), Clock(RULES.values())
    together.run(2, {CPU: 2.0})
    together.run(9, {CPU: 2.0}, present=[taken])
    changes = together.run(20, {CPU: 2.0}, sustained=[taken])
    assert together.changes_of(FindingChange.OPENED) == [(4, CPU)]
    assert [case.rules for _, case in changes] == [{"CPUTakenByNeighbor"}]
    apart.run(8, {CPU: 2.0})
    apart.run(5, {CPU: 2.0}, present=[taken])
    apart.run(20, {CPU: 2.0}, sustained=[taken])
    assert apart.changes_of(FindingChange.OPENED) == [(4, CPU), (13, CPU)]


def test_what_the_ledger_measures_later_does_not_explain_what_was_there() -> None:
    """Loss can be an effect of taken time: not if it began first."""
    taken = SignatureMatch(RULES["CPUTakenByNeighbor"], (), "a", 5e8, (Harmed("b", 0.4),))
    loss_first, together = Clock(RULES.values()), Clock(RULES.values())
    loss_first.run(10, sustained=[LOSS])
    changes = loss_first.run(20, sustained=[LOSS, taken])
    assert [(change, case.rules) for change, case in changes] == [
        (FindingChange.OPENED, {"CPUTakenByNeighbor"})
    ]
    together.run(3, sustained=[LOSS])
    together.run(20, sustained=[LOSS, taken])
    assert together.changes_of(FindingChange.OPENED) == [(0, NETWORK)]


def test_a_symptom_follows_its_cause_within_seconds() -> None:
    throttled = SignatureMatch(RULES["CPUQuotaThrottling"], (), "a", 5e8)
    loss = match_of("PacketLoss", RETRANSMITTED)
    soon, late = Clock(RULES.values()), Clock(RULES.values())
    soon.run(10, sustained=[throttled])
    soon.run(20, sustained=[throttled, loss])
    assert soon.changes_of(FindingChange.OPENED) == [(0, CPU)]
    late.run(300, sustained=[throttled])
    late.run(20, sustained=[throttled, loss])
    assert late.changes_of(FindingChange.OPENED) == [(0, CPU), (300, NETWORK)]


def test_a_symptom_that_comes_and_goes_from_the_onset_on_belongs_to_its_cause() -> None:
    throttled, loss, clock = THROTTLED, LOSS, Clock(RULES.values())
    clock.run(2, sustained=[throttled])
    for _ in range(5):
        clock.run(1, sustained=[throttled], present=[loss])
        clock.run(9, sustained=[throttled])
    clock.run(5, sustained=[throttled, loss])
    assert clock.changes_of(FindingChange.OPENED) == [(0, CPU)]


def test_a_symptom_that_was_absent_for_long_has_another_cause_when_it_comes_back() -> None:
    throttled, loss, clock = THROTTLED, LOSS, Clock(RULES.values())
    clock.run(2, sustained=[throttled])
    clock.run(5, sustained=[throttled, loss])
    clock.run(60, sustained=[throttled])
    clock.run(5, sustained=[throttled, loss])
    assert clock.changes_of(FindingChange.OPENED) == [(0, CPU), (67, NETWORK)]


def test_the_signature_of_a_symptom_outlives_its_cause_as_a_case_of_its_own() -> None:
    throttled, loss, clock = THROTTLED, LOSS, Clock(RULES.values())
    clock.run(10, sustained=[throttled])
    clock.run(5, sustained=[throttled, loss])
    clock.run(30, sustained=[loss])
    assert clock.changes_of(FindingChange.RESOLVED) == [(24, CPU)]
    assert clock.changes_of(FindingChange.OPENED) == [(0, CPU), (24, NETWORK)]


def test_a_short_gap_is_not_calm_and_a_long_gap_closes_as_unobserved() -> None:
    clock = Clock()
    clock.run(6, {CPU: 2.0})
    clock.second += 30
    assert clock.run(1, {CPU: 2.0}) == []
    clock.second += 60
    ((change, case),) = clock.run(1)
    assert change is FindingChange.RESOLVED
    assert case.lifecycle.resolution is Resolution.UNOBSERVED


def test_what_is_not_read_any_more_closes_as_unobserved() -> None:
    clock = Clock()
    clock.run(30, {CPU: 2.0})
    assert clock.run(59, unobserved=True) == []
    ((change, case),) = clock.run(1, unobserved=True)
    assert (change, case.lifecycle.resolution) == (FindingChange.RESOLVED, Resolution.UNOBSERVED)
    assert case.episode.last_ns == 30 * NS_PER_SECOND


def test_a_clock_that_was_set_back_gives_no_case_that_ends_before_it_began() -> None:
    clock = Clock()
    clock.run(20)
    clock.run(4, {CPU: 2.0})
    clock.second -= 20
    clock.run(5, {CPU: 2.0})
    (case,) = clock.tracker.open
    assert case.episode.first_ns == 4 * NS_PER_SECOND
    assert case.episode.first_ns < case.episode.last_ns


def test_open_cases_are_returned_when_watching_ends() -> None:
    clock = Clock()
    clock.run(5, {CPU: 2.0})
    ((change, case),) = clock.tracker.finish()
    assert (change, case.trace.seconds) == (FindingChange.CHANGED, 5)


class CulpritsBack(Relations):
    """The culprits of all cases are back at their levels from before."""

    def is_culprit_back(self, case: Case) -> bool:
        return True


def test_a_case_ends_if_its_culprit_is_back_and_another_cause_describes_its_columns() -> None:
    clock = Clock(RULES.values(), kind=CulpritsBack)
    clock.run(60, {CPU: 2.0}, moved={DELAY: 20.0})
    contention = SignatureMatch(RULES["CPUContention"], ())
    clock.run(30, {CPU: 2.0}, moved={DELAY: 20.0}, sustained=[contention])
    assert clock.changes_of(FindingChange.OPENED) == [(4, CPU), (60, CPU)]
    assert clock.changes_of(FindingChange.RESOLVED) == [(70, CPU)]


def test_a_case_goes_on_if_no_other_cause_describes_its_columns() -> None:
    clock = Clock(RULES.values(), kind=CulpritsBack)
    clock.run(60, {CPU: 2.0})
    contention = SignatureMatch(RULES["CPUContention"], ())
    clock.run(30, {CPU: 2.0}, sustained=[contention])
    assert clock.changes_of(FindingChange.RESOLVED) == []


def test_what_moved_by_chance_when_a_signature_began_is_another_case_when_it_moves_again() -> None:
    loss = match_of("PacketLoss", RETRANSMITTED)
    steal, lost = {STEAL: 20.0}, {RETRANSMITTED: 20.0}
    clock = Clock(RULES.values())
    clock.run(4, {NETWORK: 2.0, CPU: 2.0}, [loss], {**lost, **steal})
    clock.run(20, {NETWORK: 2.0}, [loss], lost)
    clock.run(20, {NETWORK: 2.0, CPU: 2.0}, [loss], {**lost, **steal})
    clock.run(20, {NETWORK: 2.0}, [loss], lost)
    assert clock.changes_of(FindingChange.OPENED) == [(0, NETWORK), (28, CPU)]
    assert clock.changes_of(FindingChange.RESOLVED) == [(53, CPU)]


def test_what_moves_as_long_as_a_signature_belongs_to_it() -> None:
    loss = match_of("PacketLoss", RETRANSMITTED)
    clock = Clock(RULES.values())
    moved = {RETRANSMITTED: 20.0, STEAL: 20.0}
    for _ in range(6):  # not back for long enough
        clock.run(4, {NETWORK: 2.0, CPU: 2.0}, [loss], moved)
        clock.run(9, {NETWORK: 2.0}, [loss], {RETRANSMITTED: 20.0})
    assert clock.changes_of(FindingChange.OPENED) == [(0, NETWORK)]
