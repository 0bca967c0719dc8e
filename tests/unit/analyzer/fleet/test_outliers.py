"""Nodes compared with their peers: which are outliers, and which must not be."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_analyzer.fleet.compared import ComparedNodes
from reveal_analyzer.fleet.measures import STANDING, measure
from reveal_analyzer.fleet.outliers import Drift, Outlier, drifts, most_outliers, outliers, ranked
from reveal_analyzer.fleet.rounds import compare_all
from reveal_analyzer.fleet.summary import Summary
from reveal_contract import catalogue
from support.fleet_summaries import GIB, WORK, fleet, summary
from support.property_tests import examples

IDLE = {"memory.hugepages.free": 4.0 * GIB}
SLOW = {"storage.pressure.some": 4e8}
NOTHING = ([], [], ComparedNodes())


def found_among(summaries: list[Summary]) -> list[Outlier]:
    return ranked(chain.from_iterable(outliers(summaries)))


def named(summaries: list[Summary]) -> list[tuple[str, str]]:
    return [(outlier.node, outlier.metric) for outlier in found_among(summaries) if outlier.harm]


def test_what_is_compared_is_in_the_catalogue() -> None:
    for name in STANDING:
        assert catalogue.find(name).name == name
        measured = measure(name)
        assert measured is not None
        assert measured.sign


def test_reserved_pages_on_a_node_of_nine_are_found_for_any_workload() -> None:
    nodes = [replace(node, workload=(f"work-{node.node} x 1",)) for node in fleet(9, IDLE)]
    (found,) = found_among(nodes)
    assert (found.node, found.metric, found.standing) == ("n3", "memory.hugepages.free", True)
    assert (found.compared, found.alike, found.value) == (9, 1, 4.0 * GIB)
    assert (found.median, found.low, found.high) == (0.0, 0.0, 0.0)


def test_more_of_what_hurts_is_found_among_nodes_with_the_same_work_only() -> None:
    assert named(fleet(9, SLOW)) == [("n3", "storage.pressure.some")]
    other = [replace(node, workload=(node.node,)) for node in fleet(9, SLOW)]
    assert named(other) == []


def test_less_of_what_hurts_is_nothing() -> None:
    assert named(fleet(9, {"cpu.pressure.some": 0.0})) == []


def test_activity_explains_and_is_nothing_by_itself() -> None:
    busy = {"cpu.context_switches": 4e5}
    assert found_among(fleet(9, busy)) == []
    found = {outlier.metric: outlier.harm for outlier in found_among(fleet(9, {**SLOW, **busy}))}
    assert found == {"cpu.context_switches": False, "storage.pressure.some": True}


def test_activity_that_the_others_did_not_read_explains_nothing() -> None:
    nodes = fleet(9, SLOW)
    unread = [
        replace(node, activity={**node.activity, "cpu.context_switches": math.nan})
        if node.node != "n3"
        else node
        for node in nodes
    ]
    assert [outlier.metric for outlier in found_among(unread)] == ["storage.pressure.some"]


def test_an_idle_node_is_no_outlier_and_hides_none() -> None:
    nodes = fleet(9, SLOW)
    idle = summary("idle", {"cpu.pressure.some": 0.0, "storage.pressure.some": 0.0}, workload=())
    assert named([*nodes, idle]) == [("n3", "storage.pressure.some")]
    loud_but_idle = replace(nodes[2], workload=())
    assert named([*nodes[:2], loud_but_idle, *nodes[3:]]) == []


def test_an_incomplete_minute_is_not_compared_by_load() -> None:
    nodes = fleet(9, {**SLOW, **IDLE})
    nodes[2] = replace(nodes[2], seconds=20)
    assert named(nodes) == [("n3", "memory.hugepages.free")]


@pytest.mark.parametrize("count", [4, 5, 9, 40])
def test_it_works_from_four_nodes_on(count: int) -> None:
    assert named(fleet(count, {**IDLE, **SLOW})) == [
        ("n3", "memory.hugepages.free"), ("n3", "storage.pressure.some"),
    ]  # fmt: skip


def test_half_and_half_is_two_kinds_of_nodes() -> None:
    pages = ({"memory.thp": "never"}, {"memory.thp": "always"})
    nodes = [summary(f"n{i}", IDLE if i % 2 else None, facts=pages[i % 2]) for i in range(8)]
    assert found_among(nodes) == []
    assert drifts(nodes) == []


def test_a_tail_without_a_gap_is_no_outlier() -> None:
    nodes = [summary(f"n{i}", {"storage.pressure.some": 3e7 * 1.7**i}) for i in range(9)]
    assert named(nodes) == []


def test_a_metric_that_few_nodes_have_is_not_compared() -> None:
    nodes = fleet(9)
    nodes[2] = summary("n3", {"memory.hardware_corrupted": 4096.0 * 64})
    assert named(nodes) == []


def test_metrics_of_a_newer_collector_are_passed_over() -> None:
    nodes = [replace(node, names=(*node.names[:-1], "cpu.of.tomorrow")) for node in fleet(9, IDLE)]
    assert named(nodes) == [("n3", "memory.hugepages.free")]


def test_a_setting_that_differs_on_a_node_of_nine_is_found() -> None:
    nodes = [summary(f"n{i}", facts={"cpu.smt": "off" if i == 4 else "on"}) for i in range(9)]
    assert drifts(nodes) == [Drift("n4", "cpu.smt", "off", "on", 9, 1)]
    unknown = [replace(node, facts={}) if node.node == "n4" else node for node in nodes]
    assert drifts(unknown) == []
    assert drifts(nodes[2:5]) == []


@pytest.mark.parametrize(("nodes", "outlying"), [(4, 1), (9, 1), (10, 2), (100, 20)])
def test_outliers_are_up_to_a_fifth_of_the_nodes(nodes: int, outlying: int) -> None:
    assert most_outliers(nodes) == outlying


def test_classes_are_never_mixed_and_unknown_classes_not_compared() -> None:
    nodes = fleet(9, IDLE)
    split = [replace(each, kind=f"class {index % 3}") for index, each in enumerate(nodes)]
    assert compare_all(split) == NOTHING
    assert compare_all([replace(each, kind="") for each in nodes]) == NOTHING
    two = [replace(each, node=f"{each.node}.{kind}", kind=kind) for kind in "ab" for each in nodes]
    found, _, compared = compare_all(two)
    assert {each.node for each in found} == {"n3.a", "n3.b"}
    assert all(each.compared == 9 for each in found)
    assert len(compared.summaries) == 18


@given(st.integers(4, 12), st.integers(0, 2**32), st.floats(1.0, 1e4))
@examples(60)
def test_the_order_of_nodes_does_not_matter(count: int, seed: int, factor: float) -> None:
    nodes = fleet(count, {"storage.pressure.some": 3e6 * factor, **IDLE})
    before = compare_all(nodes)
    random.Random(seed).shuffle(nodes)
    after = compare_all(nodes)
    assert after[:2] == before[:2]


@given(st.integers(4, 12), st.floats(0.01, 100.0))
@examples(60)
def test_load_that_grows_on_all_nodes_alike_is_nothing(count: int, factor: float) -> None:
    nodes = [replace(node, levels=node.levels * factor) for node in fleet(count)]
    assert compare_all(nodes)[:2] == ([], [])


@given(st.integers(1, 3), st.floats(0.0, 1e12), st.floats(0.0, 1e12))
@examples(40)
def test_three_nodes_are_not_compared(count: int, pressure: float, pages: float) -> None:
    odd = {"storage.pressure.some": pressure, "memory.hugepages.free": pages}
    assert compare_all(fleet(count, odd)) == NOTHING


@given(st.lists(st.floats(0, 1e15), min_size=4, max_size=20))
@examples(100)
def test_outliers_are_few_and_beyond_all_others(levels: list[float]) -> None:
    nodes = [
        summary(f"n{index}", {"storage.pressure.some": level}, workload=WORK)
        for index, level in enumerate(levels)
    ]
    found = found_among(nodes)
    assert len(found) <= most_outliers(len(levels))
    for outlier in found:
        assert outlier.value > outlier.high >= outlier.median >= outlier.low
        assert outlier.score >= 1
