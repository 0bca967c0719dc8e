"""Certain signatures: thresholds, ratios, comparison with the history, exclusions, duration."""

from __future__ import annotations

import numpy as np

from reveal_analyzer.derive.deriver import Deriver, Second
from reveal_analyzer.hypotheses.bound_signature import ConditionInputs
from reveal_analyzer.hypotheses.column_stats import ColumnStats, confidence
from reveal_analyzer.hypotheses.loader import HypothesisRule, parse
from reveal_analyzer.hypotheses.signature_matcher import CaseKey, SignatureMatcher
from support.synthetic_node import Node

RULE = """
version: 1
hypotheses:
  - name: X
    subsystem: Network
    claim: "{value}"
    remediation: r.
    certain: {hold: [2, 3], all: [%s], unless: [%s]}
    expects:
      - {metric: network.tcp.retrans_segs, weight: 3}
      - {metric: network.tcp.out_segs, weight: 1, above: 100}
    contradicts: [{metric: network.softnet.dropped, above: 10}]
"""


def rule(conditions: str, unless: str = "") -> HypothesisRule:
    (parsed,) = parse(RULE % (conditions, unless), "x.yaml")
    return parsed


def second(changed: dict[str, float]) -> Second:
    node = Node()
    return Deriver().second(node.slice(changed), node.table)


def lasting(
    hypothesis: HypothesisRule, changed: dict[str, float], highest: float = 0.0
) -> list[int]:
    """Return how many signatures are sustained after each of three equal seconds."""
    signatures, observed = SignatureMatcher([hypothesis]), second(changed)
    now = ConditionInputs(observed.values, np.full(observed.values.size, highest), cpus=2)
    return [len(signatures.match(observed.plan, now)[0]) for _ in range(3)]


RETRANS = {"network.tcp.retrans_segs": 60.0}
ABOVE = "{metric: network.tcp.retrans_segs, above: 50}"


def test_it_must_hold_for_some_seconds() -> None:
    assert lasting(rule(ABOVE), RETRANS) == [0, 1, 1]


def test_per_cpu_and_history_factors_raise_the_threshold() -> None:
    assert (
        lasting(rule("{metric: network.tcp.retrans_segs, above: 50, per: cpus}"), RETRANS)[2] == 0
    )
    novel = rule("{metric: network.tcp.retrans_segs, above: 50, times: 3}")
    assert lasting(novel, RETRANS, highest=15.0)[2] == 1
    assert lasting(novel, RETRANS, highest=30.0)[2] == 0


def test_a_ratio_divides_by_another_metric() -> None:
    share = "{metric: network.tcp.retrans_segs, ratio_to: network.tcp.out_segs, above: %s}"
    assert lasting(rule(share % 0.1), RETRANS)[2] == 1  # 60 of 500
    assert lasting(rule(share % 0.2), RETRANS)[2] == 0


def test_unless_excludes_what_explains_it() -> None:
    hypothesis = rule(ABOVE, "{metric: network.softnet.dropped, above: 10}")
    assert lasting(hypothesis, RETRANS)[2] == 1
    assert lasting(hypothesis, RETRANS | {"network.softnet.dropped": 20.0})[2] == 0


def test_an_open_case_goes_on_below_the_limit_of_its_onset() -> None:
    """At that limit one fault would be many findings."""
    onset = "{hold: [1, 1], all: [%s], any: [{metric: network.tcp.retrans_segs, above: 80}]}"
    (hypothesis,) = parse(
        RULE.replace("{hold: [2, 3], all: [%s], unless: [%s]}", onset % ABOVE), "x.yaml"
    )
    signatures, key = SignatureMatcher([hypothesis]), CaseKey("X")

    def matches(value: float, *open_cases: CaseKey) -> bool:
        observed = second({"network.tcp.retrans_segs": value})
        highest = np.zeros(observed.values.size)
        now = ConditionInputs(observed.values, highest, cpus=2)
        return bool(signatures.match(observed.plan, now, dict.fromkeys(open_cases, highest))[0])

    assert [matches(60.0), matches(90.0)] == [False, True]
    assert [matches(60.0, key), matches(40.0, key)] == [True, False]


def test_a_metric_missing_on_this_node_never_matches() -> None:
    assert lasting(rule("{metric: storage.disk.reads, above: -1}"), RETRANS)[2] == 0


def test_confidence_weighs_what_is_expected_and_what_contradicts() -> None:
    hypothesis, observed = rule(ABOVE), second(RETRANS)
    moved = np.zeros((2, observed.values.size))
    assert (
        confidence(hypothesis, ColumnStats(observed.plan.columns, observed.values, moved)) == 0.25
    )
    moved[0] = 6.0
    assert confidence(hypothesis, ColumnStats(observed.plan.columns, observed.values, moved)) == 1.0
    dropped = second(RETRANS | {"network.softnet.dropped": 20.0})
    assert confidence(hypothesis, ColumnStats(dropped.plan.columns, dropped.values, moved)) == 0.0
