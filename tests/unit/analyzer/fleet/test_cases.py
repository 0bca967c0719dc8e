"""Outliers over minutes: opened once, resolved automatically, equal for every leader."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_analyzer.fleet.cases import FleetCase, FleetCases, deviations
from reveal_analyzer.fleet.compared import ComparedNodes
from reveal_analyzer.fleet.findings import HYPOTHESIS, finding
from reveal_analyzer.fleet.outliers import Drift, Outlier
from reveal_analyzer.fleet.rounds import compare_all
from reveal_analyzer.fleet.summary import Summary
from reveal_analyzer.fleet.workload import JobMember
from reveal_contract.finding import (
    Finding,
    FindingKind,
    FindingScope,
    Peers,
    Resolution,
    Severity,
    State,
)
from reveal_contract.metric import Subsystem
from support.fleet_summaries import GIB, fleet, part, summary
from support.property_tests import examples

IDLE = {"memory.hugepages.free": 4.0 * GIB}
SLOW = {"storage.pressure.some": 4e8}
Changes = list[tuple[int, str, str]]


def play(
    cases: FleetCases, minutes: list[list[Summary]], first: int = 100
) -> list[tuple[str, FleetCase]]:
    """Play the minutes; return every change with its case."""
    changes_of_cases = []
    for minute, nodes in enumerate(minutes, first):
        found, settings, compared = compare_all([replace(node, minute=minute) for node in nodes])
        changes_of_cases += cases.update(deviations(found, settings), compared, minute)
    return changes_of_cases


def changes(minutes: list[list[Summary]]) -> list[tuple[str, str, int]]:
    return [(change, case.key.node, case.last) for change, case in play(FleetCases(), minutes)]


def opened(odd: dict[str, float], **given: object) -> Finding:
    (_, case), *_ = play(FleetCases(), [fleet(9, odd, **given)] * 3)
    return finding(case, ())


def test_what_is_set_up_opens_in_the_second_minute_and_load_in_the_third() -> None:
    assert changes([fleet(9, IDLE)] * 10) == [("Opened", "n3", 101)]
    assert changes([fleet(9, SLOW)] * 10) == [("Opened", "n3", 102)]


def test_a_bad_minute_is_no_case() -> None:
    assert changes([fleet(9, SLOW), fleet(9, SLOW), fleet(9)] * 4) == []


def test_it_resolves_when_it_was_gone_for_three_minutes() -> None:
    observed = changes([fleet(9, IDLE)] * 3 + [fleet(9)] * 5)
    assert observed == [("Opened", "n3", 101), ("Resolved", "n3", 102)]
    again = changes([fleet(9, IDLE)] * 3 + [fleet(9), fleet(9), fleet(9, IDLE)] * 3)
    assert again == [("Opened", "n3", 101)]


def test_a_minute_counts_only_once() -> None:
    cases = FleetCases()
    assert [play(cases, [fleet(9, IDLE)]) for _ in range(9)] == [[]] * 9


def test_while_a_node_is_away_its_case_stays_until_it_has_left() -> None:
    there, away = fleet(9, IDLE), [node for node in fleet(9) if node.node != "n3"]
    assert changes([there] * 2 + [away] * 9 + [there] * 2) == [("Opened", "n3", 101)]
    opened, gone = play(FleetCases(), [there] * 2 + [away] * 20)
    assert (opened[0], gone[0]) == ("Opened", "Resolved")
    reported = finding(gone[1], (), resolved=True)
    assert reported.state is State.RESOLVED
    assert reported.notes == ("the node can no longer be compared with others",)
    assert reported.resolution is Resolution.UNOBSERVED


def test_a_node_that_is_compared_and_like_the_others_again_has_ended() -> None:
    *_, gone = play(FleetCases(), [fleet(9, IDLE)] * 3 + [fleet(9)] * 5)
    assert finding(gone[1], (), resolved=True).resolution is Resolution.ENDED
    assert finding(gone[1], ()).resolution is Resolution.NONE


def uncompared(nodes: list[Summary], **changed: object) -> list[Summary]:
    """Return the nodes without what deviates on the third one, which is changed as well."""
    return [replace(node, **changed) if node.node == "n3" else node for node in nodes]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "unknown",
    [
        uncompared(fleet(9), workload=("other x 1",)),  # the only node with this work
        uncompared(fleet(9), seconds=10),
        uncompared(fleet(9), levels=np.full(len(fleet(1)[0].names), np.nan)),
    ],
    ids=["other work", "a part of a minute", "not read"],
)
def test_what_was_not_compared_is_not_well(unknown: list[Summary]) -> None:
    there = fleet(9, SLOW)
    assert changes([there] * 3 + [unknown] * 9 + [there] * 2) == [("Opened", "n3", 102)]
    *_, (change, case) = play(FleetCases(), [there] * 3 + [unknown] * 11)
    assert change == "Resolved"
    assert finding(case, (), resolved=True).resolution is Resolution.UNOBSERVED
    assert changes([there, there, unknown] * 4) == []


@pytest.mark.parametrize("gone", [{}, {"job.step": np.nan}])
def test_a_slow_job_whose_steps_cannot_be_read_is_not_well(gone: dict[str, float]) -> None:
    def nodes(**odd: float) -> list[Summary]:
        times = {f"n{number}": {"job.step": 1.5e9} for number in range(1, 7)} | {"n3": dict(odd)}
        return [replace(n, jobs={"ml/Job/train": part(times[n.node])}) for n in fleet(6)]

    slow = nodes(**{"job.step": 2e9})
    observed = changes([slow] * 3 + [nodes(**gone)] * 9)
    assert observed == [("Opened", "n3", 102)]
    ended = changes([slow] * 3 + [nodes(**{"job.step": 1.5e9})] * 9)
    assert ended == [("Opened", "n3", 102), ("Resolved", "n3", 102)]


def test_a_setting_that_cannot_be_read_is_not_as_on_the_others() -> None:
    nodes = [replace(node, facts={"cpu.smt": "on"}) for node in fleet(9)]
    odd = uncompared(nodes, facts={"cpu.smt": "off"})
    assert changes([odd] * 3 + [uncompared(nodes, facts={})] * 9) == [("Opened", "n3", 101)]
    assert changes([odd] * 3 + [nodes] * 9)[1:] == [("Resolved", "n3", 102)]


def test_a_fleet_that_shrinks_below_four_ends_its_cases() -> None:
    observed = changes([fleet(9, IDLE)] * 2 + [fleet(3, IDLE)] * 12)
    assert observed == [("Opened", "n3", 101), ("Resolved", "n3", 101)]


def test_settings_and_harm_are_cases_of_their_own() -> None:
    nodes = [replace(node, facts={"memory.thp": "never"}) for node in fleet(9, IDLE)]
    nodes[2] = replace(nodes[2], facts={"memory.thp": "always"})
    reported = play(FleetCases(), [nodes] * 3)
    assert [(case.key.subsystem, case.key.kind) for _, case in reported] == [
        (Subsystem.MEMORY, FindingKind.ANOMALY), (Subsystem.MEMORY, FindingKind.CONFIGURATION),
    ]  # fmt: skip


def test_a_setting_joins_the_harm_it_does() -> None:
    nodes = [replace(node, facts={"memory.hugepages": "none"}) for node in fleet(9, IDLE)]
    nodes[2] = replace(nodes[2], facts={"memory.hugepages": "2048 x 2048 kB"})
    (reported,) = play(FleetCases(), [nodes] * 3)
    opened_finding = finding(reported[1], ())
    assert opened_finding.claim.startswith("Huge pages reserved on 1 of 9 nodes")
    assert [node.metric for node in opened_finding.evidence] == [
        "memory.hugepages.free", "fact.memory.hugepages",
    ]  # fmt: skip
    used = [replace(node, facts=there.facts) for node, there in zip(fleet(9), nodes, strict=True)]
    assert [case.key.kind for _, case in play(FleetCases(), [used] * 3)] == [
        FindingKind.CONFIGURATION
    ]


def test_a_fault_is_a_single_finding_with_all_its_evidence() -> None:
    both = {**SLOW, "storage.pressure.full": 3e8, "storage.procs_blocked": 9.0}
    nodes = fleet(9, both)
    plain = {"storage.pressure.full": 1e6, "storage.procs_blocked": 0.0}
    nodes = [node if node.node == "n3" else summary(node.node, plain) for node in nodes]
    (reported,) = play(FleetCases(), [nodes] * 4)
    opened_finding = finding(reported[1], ())
    assert opened_finding.subsystem is Subsystem.STORAGE
    shows = {node.metric for node in opened_finding.evidence}
    assert "storage.procs_blocked" in shows
    assert len(shows & {"storage.pressure.some", "storage.pressure.full"}) == 1  # a single group


def test_a_worsening_case_is_updated_but_not_each_minute() -> None:
    slow, worse = (fleet(9, {"storage.pressure.some": level}) for level in (3e7, 9e9))
    observed = changes([slow] * 3 + [worse, slow] * 10)
    assert observed == [("Opened", "n3", 102), ("Changed", "n3", 107)]


def test_the_finding_names_the_node_its_peers_and_the_difference() -> None:
    reported = opened(IDLE)
    assert (
        reported.claim == "Huge pages reserved on 1 of 9 nodes: 4 GiB idle on n3, 0 B on the others"
    )
    assert (reported.node_name, reported.scope) == ("n3", FindingScope.CROSS_NODE)
    assert reported.hypothesis is not None
    assert reported.hypothesis.name == HYPOTHESIS
    assert reported.peers == Peers(9, "0", "4294967296")
    assert reported.severity is Severity.MEDIUM
    assert reported.state is State.OPEN
    assert reported.first_observed_ns == 100 * 60 * 10**9
    assert reported.evidence[0].metric == "memory.hugepages.free"
    assert reported.confidence_percent == 80
    json.dumps(reported.to_dict())


def test_a_load_finding_has_the_range_of_the_peers_and_the_workload() -> None:
    (_, case), *_ = play(FleetCases(), [fleet(9, SLOW)] * 3)
    reported = finding(
        case, (JobMember("Pod", "ml", "train-0", "u"), JobMember("Unit", "", "/a.service"))
    )
    assert reported.claim.startswith(
        "storage.pressure.some (psi io some) stands out on 1 of 9 nodes: 40 % on n3, 0.2"
    )
    assert [pod.name for pod in reported.pods] == ["train-0"]
    assert [subject.name for subject in reported.subjects] == ["/a.service"]


def test_a_setting_finding_has_both_values() -> None:
    nodes = [replace(node, facts={"cpu.smt": "on"}) for node in fleet(9)]
    nodes[2] = replace(nodes[2], facts={"cpu.smt": "off"})
    (_, case), *_ = play(FleetCases(), [nodes] * 3)
    reported = finding(case, ())
    assert reported.claim == "cpu.smt differs on 1 of 9 nodes: off on n3, on on most others"
    assert (reported.kind, reported.severity) == (FindingKind.CONFIGURATION, Severity.LOW)
    assert reported.peers == Peers(9, "on", "off")


@given(st.integers(0, 7))
@examples(8)
def test_another_leader_continues_where_the_previous_leader_stopped(index: int) -> None:
    minutes = [fleet(9, {**IDLE, **SLOW})] * 4 + [fleet(9)] * 4
    single = play(FleetCases(), minutes)
    first, second = FleetCases(), FleetCases()
    reported = play(first, minutes[:index])
    second.load(json.loads(json.dumps(first.rows())))
    reported += play(second, minutes[index:], 100 + index)
    assert [(change, finding(case, ()).id) for change, case in reported] == [
        (change, finding(case, ()).id) for change, case in single
    ]


def test_saved_rows_keep_the_names_that_other_versions_read() -> None:
    outlier = Outlier("n3", "storage.pressure.some", 4e8, 1e6, 0.0, 2e6, 9, 1, 1.5)
    drift = Drift("n3", "cpu.smt", "off", "on", 9, 1)
    cases = FleetCases()
    for minute in (100, 101, 102):
        nodes = {"n3": summary("n3", minute=minute)}
        cases.update(deviations([outlier], [drift]), ComparedNodes(nodes), minute)
    assert json.loads(json.dumps(cases.rows())) == [
        {
            "key": ["n3", "CPU", "Configuration"],
            "signs": {
                "outliers": [],
                "drifts": [
                    {"node": "n3", "fact": "cpu.smt", "value": "off", "usual": "on",
                     "compared": 9, "alike": 1},
                ],
            },
            "first": 100, "last": 102, "judged": 102, "seen": 3, "calm": 0, "opened": True,
            "told": 101, "rank": 0, "facts": ["cpu.smt"],
        },
        {
            "key": ["n3", "Storage", "Anomaly"],
            "signs": {
                "outliers": [
                    {"node": "n3", "metric": "storage.pressure.some", "value": 4e8, "median": 1e6,
                     "low": 0.0, "high": 2e6, "compared": 9, "alike": 1, "score": 1.5,
                     "standing": False, "job": "", "harm": True, "lost": 0.0},
                ],
                "drifts": [],
            },
            "first": 100, "last": 102, "judged": 102, "seen": 3, "calm": 0, "opened": True,
            "told": 102, "rank": 0, "facts": [],
        },
    ]  # fmt: skip


def test_state_of_another_version_is_left_out() -> None:
    cases = FleetCases()
    play(cases, [fleet(9, IDLE)] * 2)
    (good,) = json.loads(json.dumps(cases.rows()))
    (harm,) = good["signs"]["outliers"]
    bad = [
        None, 7, {}, {"key": 1}, {**good, "new": 1}, {**good, "key": ["n", "Soul", "Anomaly"]},
        {**good, "signs": {"outliers": [], "drifts": []}}, {**good, "first": "x"},
        {**good, "signs": {"outliers": [1], "drifts": []}}, {**good, "facts": [1]},
        {**good, "signs": {**good["signs"], "outliers": [{**harm, "metric": "cpu.tomorrow"}]}},
        {**good, "signs": {**good["signs"], "outliers": [{**harm, "value": "much"}]}},
    ]  # fmt: skip
    cases.load([*bad, good])
    assert json.loads(json.dumps(cases.rows())) == [good]


def finding_of_job(levels: dict[str, float]) -> Finding:
    nodes = [replace(node, jobs={"ml/Job/train": part()}) for node in fleet(6)]
    nodes[2] = replace(nodes[2], jobs={"ml/Job/train": part(levels)})
    (_, case), *_ = play(FleetCases(), [nodes] * 3)
    return finding(case, ())


def test_harm_to_a_job_on_a_node_names_the_job() -> None:
    throttled = finding_of_job({"cpu.subject.throttled_time": 4e8})
    assert throttled.claim.startswith("ml/Job/train: cpu.subject.throttled_time")
    assert throttled.claim.endswith("on 1 of 6 nodes: 400 ms/s on n3, 0 s/s on the others")
    less = finding_of_job({"memory.subject.page_faults": 1e4, "network.subject.tx_bytes": 2.5e7})
    assert less.claim == (
        "ml/Job/train does 50 % less of everything than on other nodes, on 1 of 6 nodes: on n3"
    )
    assert less.subsystem is Subsystem.CPU
    assert [(entry.metric, entry.direction) for entry in less.evidence] == [
        ("memory.subject.page_faults", "down"), ("network.subject.tx_bytes", "down"),
    ]  # fmt: skip
    assert less.peers == Peers(6, "20000", "10000")
