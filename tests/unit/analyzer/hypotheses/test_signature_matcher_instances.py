"""Certain signatures by device and subject, by time, and against what a case keeps."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from reveal_analyzer.derive.columns import column_plan
from reveal_analyzer.derive.deriver import Deriver
from reveal_analyzer.hypotheses.bound_signature import ConditionInputs
from reveal_analyzer.hypotheses.loader import load
from reveal_analyzer.hypotheses.signature_matcher import MOST_INSTANCES, CaseKey, SignatureMatcher
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Kind
from reveal_contract.time_units import NS_PER_SECOND
from support.synthetic_node import TABLE, Node

RULES = {rule.name: rule for rule in load()}
DISKS = ("nvme0n1", "nvme1n1")
AWAIT, BUSY = "storage.disk.await", "storage.disk.busy_time"
PLAN = column_plan(
    ChannelTable(
        tuple(Channel(name, disk, Kind.GAUGE) for disk in DISKS for name in (AWAIT, BUSY)), ()
    )
)


def inputs(
    values: Mapping[tuple[str, str], float], second: int, highest: float = 0.0
) -> ConditionInputs:
    read = np.array([values.get((c.metric.name, c.instance), 0.0) for c in PLAN.columns])
    return ConditionInputs(read, np.full(read.size, highest), 2, start_ns=second * NS_PER_SECOND)


def slow(*disks: str) -> dict[tuple[str, str], float]:
    return {(name, disk): value for disk in disks for name, value in ((AWAIT, 4e8), (BUSY, 9e8))}


def instances(values: Mapping[tuple[str, str], float]) -> list[str]:
    matcher = SignatureMatcher([RULES["SlowDevice"]])
    for second in range(3):
        found = matcher.match(PLAN, inputs(values, second))
    assert [match.key for match in found.sustained] == [match.key for match in found.present]
    return [match.instance for match in found.sustained]


def test_each_slow_disk_is_a_match() -> None:
    assert instances(slow("nvme1n1")) == ["nvme1n1"]
    assert sorted(instances(slow(*DISKS))) == sorted(DISKS)


def test_all_conditions_are_asked_of_the_same_disk() -> None:
    assert instances({(AWAIT, "nvme0n1"): 4e8, (BUSY, "nvme1n1"): 9e8}) == []


@pytest.mark.parametrize(("seconds", "holds"), [((0, 1, 2), True), ((0, 2, 4), True),
                                                ((0, 3, 6), False)])  # fmt: skip
def test_it_holds_for_seconds_of_time_and_not_for_slices(
    seconds: tuple[int, ...], holds: bool
) -> None:
    matcher = SignatureMatcher([RULES["SlowDevice"]])  # 3 of 5 seconds
    for second in seconds:
        found = matcher.match(PLAN, inputs(slow("nvme0n1"), second))
    assert bool(found.sustained) is holds


def test_a_clock_that_was_set_back_counts_nothing_twice() -> None:
    matcher = SignatureMatcher([RULES["SlowDevice"]])
    for second in (100, 101, 5):
        found = matcher.match(PLAN, inputs(slow("nvme0n1"), second))
    assert not found.sustained


def test_an_open_case_compares_with_the_time_before_it() -> None:
    """Once the level is learned, nothing is twice as high as the highest of the baseline."""
    matcher, key = SignatureMatcher([RULES["SlowDevice"]]), CaseKey("SlowDevice", "nvme0n1")
    before = np.zeros(len(PLAN.columns))
    learned = inputs(slow(*DISKS), 0, highest=4e8)
    assert matcher.match(PLAN, learned).present == []
    assert [m.key for m in matcher.match(PLAN, learned, {key: before}).present] == [key]


def throttled(values: Mapping[str, float]) -> list[tuple[str, float]]:
    subjects = tuple(
        Channel("cpu.subject.throttled_time", name, Kind.COUNTER, 1.0) for name in values
    )
    fast = tuple(c for c in TABLE.fast if c.metric != "cpu.subject.throttled_time")
    table = ChannelTable((*fast, *subjects), TABLE.slow)
    changed = {channel.label: values[channel.instance] for channel in subjects}
    second = Deriver().second(Node(table).slice(changed), table)
    highest = np.zeros(second.values.size)
    matcher = SignatureMatcher([RULES["CPUQuotaThrottling"]])
    found = matcher.match(
        second.plan, ConditionInputs(second.values, highest, 2, second.channels, 0)
    )
    return [(match.instance, match.value) for match in found.present]


def test_each_throttled_subject_is_a_match_with_its_own_value() -> None:
    found = dict(throttled({"/a": 5e8, "/b": 2e8, "/c": 1e7}))
    assert set(found) == {"/a", "/b"}
    assert found["/a"] == pytest.approx(5e8, rel=0.1)
    assert found["/b"] == pytest.approx(2e8, rel=0.1)


def test_many_that_are_throttled_a_little_match_by_their_sum() -> None:
    ((instance, value),) = throttled({f"/{number}": 4e7 for number in range(5)})
    assert instance == ""
    assert value == pytest.approx(2e8, rel=0.1)


def test_the_number_of_matches_is_bounded() -> None:
    found = throttled({f"/{number}": 2e8 + 1e8 * number for number in range(20)})
    assert len(found) == MOST_INSTANCES
    assert {name for name, _ in found} == {f"/{number}" for number in range(12, 20)}


def test_what_matched_lately_is_the_same_after_a_restart() -> None:
    matcher = SignatureMatcher([RULES["SlowDevice"]])
    for second in range(2):
        matcher.match(PLAN, inputs(slow("nvme0n1"), second))
    again = SignatureMatcher([RULES["SlowDevice"]])
    again.restore(matcher.save())
    assert [m.instance for m in again.match(PLAN, inputs(slow("nvme0n1"), 2)).sustained] == [
        "nvme0n1"
    ]
