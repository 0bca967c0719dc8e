"""The workloads of a node, and the slow node of a job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import chain

import pytest

from reveal_analyzer.fleet.jobs import slow_parts
from reveal_analyzer.fleet.outliers import Outlier, ranked
from reveal_analyzer.fleet.summary import Summary
from reveal_analyzer.fleet.workload import JobMember, is_work, jobs, workload
from reveal_contract.subjects import Identity, SubjectKind
from support.fleet_summaries import part, summary

USAGE = "cpu.subject.usage"
READS = "storage.subject.read_bytes"
LESS = {"memory.subject.page_faults": 1.4e4, "network.subject.tx_bytes": 3.5e7}


def pod(name: str, owner: str, **other: str) -> Identity:
    return Identity(f"ml/{name}", SubjectKind.POD, f"uid-{name}", "ml", name, owner=owner, **other)  # type: ignore[arg-type]


def slow_among(summaries: list[Summary]) -> list[Outlier]:
    return ranked(chain.from_iterable(slow_parts(summaries)))


def ranks(count: int, odd: dict[str, float] | None = None) -> list[Summary]:
    """Return nodes with a rank of the same job each; the levels of the third one differ."""
    nodes = []
    for number in range(1, count + 1):
        noise = {"memory.subject.page_faults": 2e4 * (1 + 0.004 * number)}
        levels = {**noise, **((odd or {}) if number == 3 else {})}
        nodes.append(summary(f"n{number}", jobs={"ml/Job/train": part(levels)}))
    return nodes


def test_pods_of_a_controller_are_the_same_job_on_all_nodes() -> None:
    means = {
        (USAGE, "ml/train-0"): 8e8, (USAGE, "ml/train-1"): 4e8, ("network.subject.tx_bytes",
        "ml/train-0"): 100.0, (USAGE, "ml/logs-x"): 1e6,
    }  # fmt: skip
    who = [
        pod("train-0", "Job/train"),
        pod("train-1", "Job/train"),
        pod("logs-x", "DaemonSet/logs"),
    ]
    found = jobs(means, who, "n1")
    assert list(found) == ["ml/Job/train"]
    train = found["ml/Job/train"]
    assert train.count == 2
    assert train.levels == {USAGE: 6e8, "network.subject.tx_bytes": 100.0}
    assert train.members[0] == JobMember("Pod", "ml", "train-0", "uid-train-0")
    assert workload(means, found) == ("ml/Job/train x 2",)


def test_a_container_within_a_pod_is_the_pods() -> None:
    inside = Identity("ml/train-0/main", SubjectKind.CONTAINER, "c", "ml", "train-0", "main")
    means = {(USAGE, "ml/train-0"): 8e8, (USAGE, "ml/train-0/main"): 8e8}
    found = jobs(means, [pod("train-0", "Job/train"), inside], "n1")
    assert found["ml/Job/train"].count == 1


def test_who_uses_next_to_nothing_is_no_work() -> None:
    means = {(USAGE, "/big"): 3e9, (USAGE, "/small"): 2e8, (USAGE, "/idle"): 1e6}
    found = jobs(means, (), "n1")
    assert sorted(found) == ["/big", "/small"]
    assert workload(means, found) == ("/big x 1",)
    assert workload({}, {}) == ()
    groups = {(USAGE, f"pgrp:python[{pid}]"): 1e8 for pid in (7, 11)}
    assert workload(groups, jobs(groups, (), "n1")) == ("pgrp:python",)


@pytest.mark.parametrize(
    ("name", "parts", "expected"),
    [
        ("ml/Job/train", ("ml/Job/train x 2",), True), ("ml/Job/train", ("ml/Job/train",), True),
        ("ml/Job/train", ("ml/Job/train-2 x 1",), False), ("a", ("a x b x 1",), False),
        ("a x b", ("a x b x 1",), True), ("a", (), False),
    ],
)  # fmt: skip
def test_a_job_is_work_with_any_count(name: str, parts: tuple[str, ...], expected: bool) -> None:
    assert is_work(name, parts) is expected


def test_a_throttled_part_is_found_by_its_harm() -> None:
    (found,) = slow_among(ranks(6, {"cpu.subject.throttled_time": 4e8}))
    assert (found.node, found.metric, found.job) == (
        "n3", "cpu.subject.throttled_time", "ml/Job/train"
    )  # fmt: skip
    assert found.harm
    assert not found.lost


def test_a_part_that_does_less_of_everything_is_slow() -> None:
    faults, sent = slow_among(ranks(6, LESS))
    assert (faults.node, faults.metric) == ("n3", "memory.subject.page_faults")
    assert (sent.node, sent.metric, sent.value) == ("n3", "network.subject.tx_bytes", 3.5e7)
    assert faults.lost == sent.lost == pytest.approx(0.3, abs=0.02)


def test_the_cpu_time_is_evidence_only_if_it_is_lower_as_well() -> None:
    evidence = {found.metric for found in slow_among(ranks(6, {**LESS, USAGE: 5e8}))}
    assert evidence == {USAGE, *LESS}


def test_a_rate_that_a_node_did_not_read_hides_no_slow_part() -> None:
    nodes = ranks(6, LESS)
    levels = {name: value for name, value in part().levels.items() if name != READS}
    nodes[5] = replace(nodes[5], jobs={"ml/Job/train": replace(part(), levels=levels)})
    nodes[:5] = [with_rate(node, READS, 1e7 if node.node == "n3" else 2e7) for node in nodes[:5]]
    evidence = {found.metric for found in slow_among(nodes)}
    assert evidence == {READS, *LESS}


def test_a_part_whose_rates_were_not_read_is_not_slow() -> None:
    nodes = ranks(6)
    nodes[2] = replace(nodes[2], jobs={"ml/Job/train": replace(part(), levels={USAGE: 9e8})})
    assert slow_among(nodes) == []


def with_rate(node: Summary, name: str, rate: float) -> Summary:
    (job,) = node.jobs.values()
    return replace(node, jobs={"ml/Job/train": replace(job, levels={**job.levels, name: rate})})


def stepping(count: int, odd: float, rates: Mapping[str, float] | None = None) -> list[Summary]:
    """Return ranks with steps of 1.57 s within 2 ms; the third one's steps and rates differ."""
    times = [1.57e9 + 2e6 * (number % 3 - 1) for number in range(1, count + 1)]
    times[2] = odd
    levels: list[dict[str, float]] = [{"job.step": time} for time in times]
    levels[2].update(rates or {})
    return [
        summary(f"n{number}", jobs={"ml/Job/train": part(given)})
        for number, given in enumerate(levels, 1)
    ]


def test_a_part_whose_steps_take_longer_is_slow() -> None:
    (found,) = slow_among(stepping(6, 1.72e9))
    assert (found.node, found.metric, found.value) == ("n3", "job.step", 1.72e9)


@pytest.mark.parametrize("odd", [2.6e9, 2.75e9, 2.9e9, 3.4e9, 6e9])
def test_steps_that_take_much_longer_are_slow(odd: float) -> None:
    """The rates may be as elsewhere: they need not follow the steps."""
    assert [found.metric for found in slow_among(stepping(6, odd))] == ["job.step"]


@pytest.mark.parametrize("times", [2, 3])
def test_steps_of_a_multiple_are_slow_if_the_rates_are_lower(times: int) -> None:
    rates = {"memory.subject.page_faults": 2e4 / times, "network.subject.tx_bytes": 5e7 / times}
    found = slow_among(stepping(6, times * 1.57e9, rates))
    assert {outlier.metric for outlier in found} == {"job.step", *rates}


def test_steps_of_a_multiple_are_slow_if_no_rate_is_known() -> None:
    nodes = stepping(6, 3.14e9)
    for number, node in enumerate(nodes):
        job = node.jobs["ml/Job/train"]
        alone = replace(job, levels={"job.step": job.levels["job.step"]})
        nodes[number] = replace(node, jobs={"ml/Job/train": alone})
    assert [outlier.metric for outlier in slow_among(nodes)] == ["job.step"]


@pytest.mark.parametrize("odd", [1.58e9, 1.4e9, 3.14e9, 4.71e9, float("nan")])
def test_a_little_longer_a_shorter_step_or_two_read_as_a_single_step_is_not(odd: float) -> None:
    assert slow_among(stepping(6, odd)) == []


@pytest.mark.parametrize(
    "odd",
    [
        {},
        {"memory.subject.page_faults": 1.4e4},  # the other rate is as everywhere: another role
        {"memory.subject.page_faults": 3e4, "network.subject.tx_bytes": 1e8},  # more is no harm
        {"memory.subject.usage": 0.0},
        {"memory.subject.page_faults": 1.9e4, "network.subject.tx_bytes": 4.7e7},
    ],
)
def test_another_role_or_a_little_less_is_not(odd: dict[str, float]) -> None:
    assert slow_among(ranks(6, odd)) == []


def test_a_nodes_pressure_stands_in_for_that_of_its_main_job() -> None:
    def node(number: int, pressure: float, **own: float) -> Summary:
        levels = {f"{name}.subject.pressure": value for name, value in own.items()}
        beside = ("ml/Job/train x 1", f"beside-{number} x 1")  # other work: not compared as nodes
        given = {"cpu.pressure.some": pressure}
        return summary(f"n{number}", given, jobs={"ml/Job/train": part(levels)}, workload=beside)

    pressed = [node(number, 6e8 if number == 3 else 2e7) for number in range(1, 7)]
    (found,) = slow_among(pressed)
    assert (found.node, found.metric, found.job) == ("n3", "cpu.pressure.some", "ml/Job/train")
    beside = [replace(each, workload=("beside x 1",)) for each in pressed]
    assert slow_among(beside) == []
    fine = [node(number, 6e8 if number == 3 else 2e7, cpu=1e6) for number in range(1, 7)]
    assert slow_among(fine) == []


def test_three_parts_are_not_compared_nor_a_part_of_a_minute() -> None:
    throttled = {"cpu.subject.throttled_time": 4e8}
    assert slow_among(ranks(3, throttled)) == []
    nodes = ranks(6, throttled)
    nodes[2] = replace(nodes[2], seconds=10)
    assert slow_among(nodes) == []


def test_two_slow_of_six_are_two_kinds() -> None:
    nodes = ranks(6, LESS)
    nodes[4] = replace(nodes[4], jobs={"ml/Job/train": part(LESS)})
    assert slow_among(nodes) == []
