"""Certain signatures: thresholds, ratios, comparison with the past, exclusions, holding."""

from __future__ import annotations

import numpy as np

from reveal_analyzer.derive.deriver import Deriver, Second
from reveal_analyzer.hypotheses.loader import HypothesisRule, parse
from reveal_analyzer.hypotheses.signatures import (
    ColumnStats,
    ConditionInputs,
    SignatureMatcher,
    confidence,
)
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
    (made,) = parse(RULE % (conditions, unless), "x.yaml")
    return made


def second(changed: dict[str, float]) -> Second:
    node = Node()
    return Deriver().second(node.slice(changed), node.table)


def lasting(made: HypothesisRule, changed: dict[str, float], highest: float = 0.0) -> list[int]:
    """How many signatures hold after each of three like seconds."""
    signatures, one = SignatureMatcher([made]), second(changed)
    now = ConditionInputs(one.values, np.full(one.values.size, highest), cpus=2)
    return [len(signatures.match(one.plan, now)[0]) for _ in range(3)]


RETRANS = {"network.tcp.retrans_segs": 60.0}
ABOVE = "{metric: network.tcp.retrans_segs, above: 50}"


def test_it_must_hold_for_some_seconds() -> None:
    assert lasting(rule(ABOVE), RETRANS) == [0, 1, 1]


def test_per_cpu_and_times_the_past_raise_the_bar() -> None:
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
    made = rule(ABOVE, "{metric: network.softnet.dropped, above: 10}")
    assert lasting(made, RETRANS)[2] == 1
    assert lasting(made, RETRANS | {"network.softnet.dropped": 20.0})[2] == 0


def test_a_metric_this_node_lacks_never_holds() -> None:
    assert lasting(rule("{metric: storage.disk.reads, above: -1}"), RETRANS)[2] == 0


def test_confidence_weighs_what_is_expected_and_what_contradicts() -> None:
    made, one = rule(ABOVE), second(RETRANS)
    moved = np.zeros((2, one.values.size))
    assert confidence(made, ColumnStats(one.plan.columns, one.values, moved)) == 0.25
    moved[0] = 6.0
    assert confidence(made, ColumnStats(one.plan.columns, one.values, moved)) == 1.0
    dropped = second(RETRANS | {"network.softnet.dropped": 20.0})
    assert confidence(made, ColumnStats(dropped.plan.columns, dropped.values, moved)) == 0.0
