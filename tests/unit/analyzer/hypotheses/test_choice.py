"""The choice of a cause: each can win, loses to contradictions, and explains its symptoms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

from reveal_analyzer.derive.columns import LEVEL, Column
from reveal_analyzer.hypotheses.choice import (
    EXPLAINING_FIT,
    LEAST_FIT,
    MATCHED_CONFIDENCE,
    Cause,
    EpisodeEvidence,
    choose,
)
from reveal_analyzer.hypotheses.column_stats import FULL_EXCESS, ColumnStats, confidence
from reveal_analyzer.hypotheses.loader import load, parse
from reveal_analyzer.hypotheses.model import Expectation, HypothesisRule
from reveal_contract import catalogue
from reveal_contract.metric import Subsystem

RULES = load()
BY_NAME = {rule.name: rule for rule in RULES}
BUILT_IN = pytest.mark.parametrize("rule", RULES, ids=list(BY_NAME))
_WHOLE = 100.0  # of a quotient's lower part
_HARM = 20.0  # weighed excess of what moved


class EvidenceBuilder:
    """Evidence put together from expectations, each wholly met."""

    def __init__(self) -> None:
        self._values: dict[tuple[str, str, str], list[float]] = {}

    def met(self, items: Iterable[Expectation]) -> EvidenceBuilder:
        for item in items:
            self._meet(item)
        return self

    def moved(self, metric: str, value: float = 0.0) -> EvidenceBuilder:
        return self.met([Expectation(metric, minimum=value)])

    def evidence(self) -> ColumnStats:
        columns = tuple(
            Column(catalogue.find(metric), instance, feature)
            for metric, instance, feature in self._values
        )
        rows = np.array(list(self._values.values())).reshape(-1, 3)
        return ColumnStats(columns, rows[:, 0], rows[:, 1:].T)

    def episode(
        self, opened_by: Subsystem, signatures: Sequence[str] = (), others: Sequence[Subsystem] = ()
    ) -> EpisodeEvidence:
        evidence = self.evidence()
        weight = np.where(evidence.excess.max(axis=0) > 0, _HARM, 0.0)
        return EpisodeEvidence(evidence, weight, signatures, opened_by, [opened_by, *others])

    def _meet(self, item: Expectation) -> None:
        own = self._row(item.metric, item.instance, item.feature)
        limits = [limit for limit in (item.above, item.below) if limit is not None]
        if limits:
            value = float(np.mean(limits)) if len(limits) > 1 else limits[0]
            if item.ratio_to:
                self._row(item.ratio_to, item.instance, "")[0] = _WHOLE
                value = 1.5 * value * _WHOLE if item.above is not None else 0.5 * value * _WHOLE
            own[0] = value
        else:
            own[1 + (item.direction == "down")] = FULL_EXCESS
            own[0] = max(own[0], item.minimum or 0.0)

    def _row(self, metric: str, instance: str, feature: str) -> list[float]:
        return self._values.setdefault((metric, instance, feature or LEVEL), [0.0, 0.0, 0.0])


def by_evidence(rule: HypothesisRule, *contradictions: Expectation) -> Cause:
    builder = EvidenceBuilder().met(rule.expects).met(contradictions)
    return choose(RULES, builder.episode(rule.subsystem))


@BUILT_IN
def test_a_rule_wins_on_what_it_expects(rule: HypothesisRule) -> None:
    cause = by_evidence(rule)
    assert cause.rule is rule
    assert cause.confidence == pytest.approx(1.0)
    assert cause.subsystem is rule.subsystem


@BUILT_IN
def test_a_rule_loses_to_what_contradicts_it(rule: HypothesisRule) -> None:
    for item in rule.contradicts:
        assert by_evidence(rule, item).rule is not rule, item.metric


@BUILT_IN
def test_optional_evidence_is_not_needed(rule: HypothesisRule) -> None:
    needed = [item for item in rule.expects if not item.optional]
    assert needed or all(item.above is not None for item in rule.expects)
    if needed:
        assert confidence(rule, EvidenceBuilder().met(needed).evidence()) == pytest.approx(1.0)


@BUILT_IN
def test_a_rule_is_not_named_on_nothing(rule: HypothesisRule) -> None:
    assert confidence(rule, EvidenceBuilder().moved("cpu.load.tasks").evidence()) == 0.0


def test_no_two_rules_explain_each_other() -> None:
    assert not [
        (first.name, other.name)
        for first, other in permutations(RULES, 2)
        if first.explains(other) and other.explains(first)
    ]


def test_a_rule_does_not_name_its_own_footing_as_its_symptom() -> None:
    for rule in RULES:
        assert not rule.required_metrics() <= {symptom.metric for symptom in rule.symptoms}, (
            rule.name
        )


@pytest.mark.parametrize(
    ("signature", "where", "behind"),
    [
        ("InterruptPressure", Subsystem.CPU, "Swapping"),
        ("ContextSwitchStorm", Subsystem.CPU, "PacketStorm"),
        ("BlockedOnIO", Subsystem.STORAGE, "SlowDevice"),
        ("BlockedOnIO", Subsystem.STORAGE, "StorageReadBurst"),
        ("BlockedOnIO", Subsystem.STORAGE, "MemoryPressure"),
        ("ForkStorm", Subsystem.CPU, "OOMKill"),
        ("GPUError", Subsystem.GPU, "GPUUncorrectedECC"),
    ],
)
def test_a_signature_that_stands_on_symptoms_is_explained_away(
    signature: str, where: Subsystem, behind: str
) -> None:
    builder = EvidenceBuilder().met(BY_NAME[signature].expects).met(BY_NAME[behind].expects)
    cause = choose(RULES, builder.episode(where, [signature, behind]))
    assert cause.rule is BY_NAME[behind]
    assert cause.subsystem is BY_NAME[behind].subsystem
    explained = {rule.name for rule in cause.explained}
    assert signature in explained or BY_NAME[behind].subsystem is where


def test_a_sustained_signature_needs_no_other_evidence() -> None:
    signature = BY_NAME["ContextSwitchStorm"]
    cause = choose(
        RULES, EvidenceBuilder().met(signature.expects[:1]).episode(Subsystem.CPU, [signature.name])
    )
    assert cause.rule is signature
    assert cause.confidence == MATCHED_CONFIDENCE
    assert cause.explained == ()


@pytest.mark.parametrize("cause", ["InterruptPressure", "SoftirqPressure"])
def test_what_occupies_a_cpu_with_interrupts_explains_that_tasks_wait_for_it(cause: str) -> None:
    """Its signature holds at the onset, that of the waiting tasks up to ten seconds later."""
    assert BY_NAME[cause].explains(BY_NAME["OneCPUOverloaded"])
    assert not BY_NAME["OneCPUOverloaded"].explains(BY_NAME[cause])


def test_a_signature_must_be_sustained_to_explain_others() -> None:
    builder = (
        EvidenceBuilder().met(BY_NAME["InterruptPressure"].expects).met(BY_NAME["Swapping"].expects)
    )
    cause = choose(RULES, builder.episode(Subsystem.CPU, ["InterruptPressure"]))
    assert cause.rule is BY_NAME["InterruptPressure"]


def test_of_signatures_that_fit_alike_the_first_to_hold_is_taken() -> None:
    names = ["ContextSwitchStorm", "CPUContention"]
    builder = EvidenceBuilder().met(BY_NAME[names[0]].expects).met(BY_NAME[names[1]].expects)
    for signatures in (names, names[::-1]):
        assert (
            choose(RULES, builder.episode(Subsystem.CPU, signatures)).rule is BY_NAME[signatures[0]]
        )


def test_weak_evidence_names_nothing_and_explains_nothing() -> None:
    network = BY_NAME["PacketStorm"].expects[2:]  # a fifth of what is expected
    builder = EvidenceBuilder().met(network)
    assert confidence(BY_NAME["PacketStorm"], builder.evidence()) < LEAST_FIT < EXPLAINING_FIT
    assert choose(RULES, builder.episode(Subsystem.NETWORK)).rule is None
    with_signature = builder.met(BY_NAME["ContextSwitchStorm"].expects)
    cause = choose(RULES, with_signature.episode(Subsystem.CPU, ["ContextSwitchStorm"]))
    assert cause.rule is BY_NAME["ContextSwitchStorm"]


def test_a_contradicted_signature_yields_to_a_cause_that_fits() -> None:
    storm = BY_NAME["PageFaultStorm"]
    builder = EvidenceBuilder().met(storm.expects).met(storm.contradicts)
    cause = choose(RULES, builder.episode(Subsystem.MEMORY, ["PageFaultStorm"]))
    assert cause.rule is BY_NAME["OOMKill"]


def test_without_a_cause_of_its_own_a_signature_elsewhere_is_taken() -> None:
    builder = EvidenceBuilder().moved("storage.temperature").met(BY_NAME["OOMKill"].expects)
    episode = builder.episode(Subsystem.STORAGE, ["OOMKill"], [Subsystem.MEMORY])
    assert choose(RULES, episode).subsystem is Subsystem.MEMORY


def test_a_signature_elsewhere_precedes_evidence_that_does_not_explain_it() -> None:
    # reads by another process began in the second in which packets began to be lost
    builder = EvidenceBuilder().met(BY_NAME["StorageReadBurst"].expects)
    builder.met(BY_NAME["PacketLoss"].expects)
    network = [Subsystem.NETWORK]
    cause = choose(RULES, builder.episode(Subsystem.STORAGE, ["PacketLoss"], network))
    assert cause.rule is BY_NAME["PacketLoss"]
    reads = choose(RULES, builder.episode(Subsystem.STORAGE, (), network))
    assert reads.rule is BY_NAME["StorageReadBurst"]


def test_evidence_that_explains_a_signature_elsewhere_stays_the_cause() -> None:
    storm, switches = BY_NAME["PacketStorm"], BY_NAME["ContextSwitchStorm"]
    builder = EvidenceBuilder().met(storm.expects).met(switches.expects)
    episode = builder.episode(Subsystem.NETWORK, [switches.name], [Subsystem.CPU])
    assert choose(RULES, episode).rule is storm


TWO = """
version: 1
hypotheses:
  - {name: A, subsystem: CPU, claim: a, remediation: r., expects: [{metric: cpu.steal}]}
  - name: B
    subsystem: CPU
    claim: b
    remediation: r.
    expects: [{metric: cpu.steal}, {metric: cpu.pressure.some}]
    symptoms: [storage.procs_blocked]
"""


def test_of_two_equal_fits_the_cause_that_explains_more_is_chosen() -> None:
    rules = [rule for rule in parse(TWO, "two.yaml") if isinstance(rule, HypothesisRule)]
    builder = (
        EvidenceBuilder()
        .moved("cpu.steal")
        .moved("cpu.pressure.some")
        .moved("storage.procs_blocked")
    )
    assert choose(rules, builder.episode(Subsystem.CPU)).rule is rules[1]
    assert choose(rules[::-1], builder.episode(Subsystem.CPU)).rule is rules[1]
    alone = EvidenceBuilder().moved("cpu.steal")
    assert choose(rules, alone.episode(Subsystem.CPU)).rule is rules[0]


def test_a_quotient_of_nothing_is_no_evidence() -> None:
    (rule,) = parse(
        "version: 1\nhypotheses:\n  - {name: A, subsystem: Network, claim: a, remediation: r.,"
        " expects: [{metric: network.tcp_ext.tcpdsack_recv, ratio_to: network.tcp.retrans_segs,"
        " above: 0.5}]}",
        "x",
    )
    columns = [Column(catalogue.find(name), "", LEVEL) for name in
               ("network.tcp_ext.tcpdsack_recv", "network.tcp.retrans_segs")]  # fmt: skip
    for whole, met in ((0.0, 0.0), (float("nan"), 0.0), (10.0, 1.0)):
        values = np.array([6.0, whole])
        assert confidence(rule, ColumnStats(tuple(columns), values, np.zeros((2, 2)))) == met


def test_an_instance_is_meant_by_its_name_or_a_pattern() -> None:
    item = Expectation("network.softirqs", instance="NET_?X")
    metric = catalogue.find("network.softirqs")
    columns = tuple(Column(metric, name, LEVEL) for name in ("NET_RX", "NET_TX", "BLOCK"))
    stats = ColumnStats(columns, np.zeros(3), np.zeros((2, 3)))
    assert stats.indices(item).tolist() == [0, 1]


FAINT = """
version: 1
hypotheses:
  - name: Held
    subsystem: CPU
    claim: a
    remediation: r.
    certain:
      {hold: [3, 5], severity: High, all: [{metric: cpu.subject.throttled_time, above: 1.0e+8}]}
    expects: [{metric: cpu.subject.throttled_time}]
  - name: Faint
    subsystem: CPU
    claim: b
    remediation: r.
    expects: [{metric: cpu.steal}, {metric: cpu.pressure.some, weight: 4}]
"""


def test_a_signature_with_a_learned_level_does_not_yield_to_a_weak_cause() -> None:
    """An analyzer that was killed when a fault began has learned from its first seconds."""
    rules = [rule for rule in parse(FAINT, "faint.yaml") if isinstance(rule, HypothesisRule)]
    fell = Expectation("cpu.subject.throttled_time", direction="down")
    builder = EvidenceBuilder().met([fell]).moved("cpu.steal")
    assert 0 < confidence(rules[1], builder.evidence()) < LEAST_FIT
    assert choose(rules, builder.episode(Subsystem.CPU, ["Held"])).rule is rules[0]


_BEHIND_FLUSHES = (
    "storage.disk.read_time", "storage.disk.queue_time", "storage.disk.busy_time",
    "storage.disk.in_flight", "storage.pressure.some", "storage.procs_blocked", "cpu.iowait",
)  # fmt: skip


def test_reads_that_wait_for_the_flushes_of_others_are_no_burst_of_reads() -> None:
    reads = EvidenceBuilder()
    for metric in _BEHIND_FLUSHES:
        reads.moved(metric, 1e9)
    storm = reads.moved("storage.disk.flush_time", 6e8).moved("storage.disk.flushes", 15)
    storm.met([Expectation("storage.disk.reads", above=500.0)])  # as many as before
    cause = choose(RULES, storm.episode(Subsystem.STORAGE))
    assert cause.rule is BY_NAME["FlushStorm"]


def test_more_reads_than_before_are_a_burst_of_reads() -> None:
    burst = EvidenceBuilder()
    for metric in (*_BEHIND_FLUSHES, "storage.disk.reads"):
        burst.moved(metric, 1e9)
    cause = choose(RULES, burst.episode(Subsystem.STORAGE))
    assert cause.rule is BY_NAME["StorageReadBurst"]


def test_duplicates_of_the_host_do_not_contradict_losses_of_its_pods() -> None:
    """Counters of TCP extensions are the host's own, retransmissions those of pods, too."""
    builder = EvidenceBuilder().met(BY_NAME["PacketLoss"].expects)
    builder.moved("network.tcp_ext.tcpdsack_recv", 0.02)
    builder.moved("network.tcp.retrans_segs", 0.02)
    builder.moved("network.tcp.retransmitted", 72.0)
    cause = choose(RULES, builder.episode(Subsystem.NETWORK, ["PacketLoss"]))
    assert cause.rule is BY_NAME["PacketLoss"]


def test_compaction_without_stalled_tasks_is_a_cause_of_its_own() -> None:
    moved = EvidenceBuilder().moved("memory.vm.compact_migrate_scanned", 2e8)
    moved.moved("memory.vm.compact_isolated", 7e4).moved("cpu.steal", 2e8)
    found = choose(RULES, moved.episode(Subsystem.MEMORY))
    assert found.rule is BY_NAME["MemoryCompaction"]
    stalls = [item for item in BY_NAME["CompactionStalls"].expects if not item.optional]
    found = choose(RULES, moved.met(stalls).episode(Subsystem.MEMORY))
    assert found.rule is BY_NAME["CompactionStalls"]


def test_a_cause_of_which_nothing_is_left_does_not_explain_what_lasts() -> None:
    """Tasks waited for memory at the onset only; what lasts is locked memory."""
    moved = EvidenceBuilder().met(BY_NAME["MemoryPressure"].expects)
    for metric in ("memory.unevictable", "memory.mlocked"):
        moved.moved(metric, 1e9)
    begun = moved.episode(Subsystem.MEMORY)
    assert choose(RULES, begun).rule is BY_NAME["MemoryPressure"]
    lasting = [
        column.metric.name in ("memory.unevictable", "memory.mlocked")
        for column in begun.stats.columns
    ]
    later = replace(begun, weights=np.where(lasting, begun.weights, 0.0))
    assert choose(RULES, later).rule is BY_NAME["MemoryLocked"]


def test_a_cause_is_not_named_without_what_its_claim_states() -> None:
    """Page cache that is read again while no task waits for memory is no memory pressure."""
    again = EvidenceBuilder().moved("memory.vm.workingset_refault_file", 2659.0)
    again.moved("memory.vm.pgmajfault", 24.0)
    assert choose(RULES, again.episode(Subsystem.MEMORY)).rule is None
    waiting = again.moved("memory.pressure.some", 4e7).episode(Subsystem.MEMORY)
    assert choose(RULES, waiting).rule is BY_NAME["MemoryPressure"]


@pytest.mark.parametrize("beside", ["OneCPUOverloaded", "CPUContention"])
@pytest.mark.parametrize("excess", [0.0, np.nan])
def test_a_signature_whose_baseline_is_not_known_stays_the_cause(
    beside: str, excess: float
) -> None:
    """As of a pod that is throttled where another one was before, or after a restart."""
    moved = EvidenceBuilder().met(BY_NAME[beside].expects)
    known = moved.moved("cpu.subject.throttled_time", 6e8).episode(
        Subsystem.CPU, ["CPUQuotaThrottling"]
    )
    own = [column.metric.name.startswith("cpu.subject.throttled") for column in known.stats.columns]
    excesses = np.where(own, excess, known.stats.excess)
    unknown = replace(
        known, stats=replace(known.stats, excess=excesses), weights=np.where(own, 0, known.weights)
    )
    assert choose(RULES, unknown).rule is BY_NAME["CPUQuotaThrottling"]
