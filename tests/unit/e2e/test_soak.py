"""The soak's fixed schedule, and how it computes costs from the kubelets' statistics."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from soak import schedule, usage, workloads
from soak.result import Result, memory
from soak.usage import Sample

NODES = ("node1", "node2", "node3")
COMPONENTS = {("reveal-system", "analyzer-x"): "analyzer"}


def sample(minute: float, megabytes: float, pod: str = "analyzer-x", cpu: float = 0.0) -> Sample:
    size = int(megabytes * 1e6)
    return Sample(minute, "node1", pod, "analyzer", cpu, 60 * minute, size, size // 2)


def pod_stats(pod: str, **stats: Any) -> dict[str, Any]:
    return {"podRef": {"namespace": "reveal-system", "name": pod}, **stats}


def test_jobs_come_and_go_in_order_and_live_for_a_minute() -> None:
    planned = schedule.steps(1800, NODES)
    assert [step.start_s for step in planned] == sorted(step.start_s for step in planned)
    assert {step.kind for step in planned} == {"training", "serving", "asking", "loading"}
    began = {step.name: step.start_s for step in planned if step.starts}
    assert all(step.start_s - began[step.name] >= 60 for step in planned if not step.starts)
    assert len({step.name for step in planned if step.starts}) == sum(
        step.starts for step in planned
    )


def test_nothing_is_done_after_the_end_and_each_node_has_its_turn() -> None:
    planned = schedule.steps(1200, NODES)
    assert all(step.start_s < 1200 for step in planned)
    assert {step.node for step in planned if step.name.startswith("training-")} == set(NODES)


def test_who_asks_is_on_another_node_and_asks_the_server_of_its_cycle() -> None:
    planned = {step.name: step for step in schedule.steps(700, NODES) if step.starts}
    assert planned["asking-2"].node != planned["serving-2"].node
    [pod] = workloads.objects(planned["asking-2"], "image", "jobs")
    assert "serving-2" in pod["spec"]["containers"][0]["command"]
    server, service = workloads.objects(planned["serving-2"], "image", "jobs")
    assert service["spec"]["selector"] == server["metadata"]["labels"]


def test_a_summary_gives_the_pods_that_have_a_component() -> None:
    cpu = {"time": "2026-11-21T10:00:00Z", "usageCoreNanoSeconds": 2_500_000_000}
    size = {"workingSetBytes": 3_000_000, "rssBytes": 1_000_000}
    pods = [
        pod_stats("analyzer-x", cpu=cpu, memory=size),
        pod_stats("somebody", cpu=cpu, memory=size),
        pod_stats("analyzer-x", cpu={}, memory={}),  # it has just started
    ]
    [found] = usage.samples({"node": {"nodeName": "node1"}, "pods": pods}, COMPONENTS, 1.0)
    assert (found.cpu_seconds, found.working_set_bytes, found.node) == (2.5, 3_000_000, "node1")


def test_a_cost_is_over_the_time_between_readings() -> None:
    [cost] = usage.costs([sample(0, 10, cpu=1), sample(1, 10, cpu=7), sample(2, 10, cpu=10)])
    assert cost.cpu_millicores == pytest.approx(1000 * 9 / 120)
    assert cost.worst_minute_millicores == pytest.approx(100)


def test_a_clock_that_did_not_advance_counts_once() -> None:
    old = sample(1, 10, cpu=7)
    again = Sample(2, *[getattr(old, name) for name in list(old.__dataclass_fields__)[1:]])
    [cost] = usage.costs([sample(0, 10, cpu=1), old, again])
    assert cost.cpu_millicores == pytest.approx(100)


def test_growth_is_from_when_it_had_settled() -> None:
    settling = [50, 80, 95, 98, 99] + (usage.SETTLED_MINUTES - 5) * [99]
    sizes = [*settling, 100, 100, 100, 101, 103, 104, 104, 104]
    [cost] = usage.costs([sample(minute, size) for minute, size in enumerate(sizes)])
    assert cost.growth_percent == pytest.approx(4)


def test_a_replaced_pod_restarts_its_clock() -> None:
    samples = [sample(0, 10, cpu=90), sample(1, 10, cpu=96), sample(2, 10, "analyzer-y", 1.0)]
    [cost] = usage.costs([*samples, sample(3, 10, "analyzer-y", 4.0)])
    assert (cost.pods, cost.cpu_millicores) == (2, pytest.approx(75))


def test_two_replicas_on_a_node_share_a_memory_figure() -> None:
    assert memory([sample(1, 10), sample(1, 20, "analyzer-y")]) == {"analyzer node1": 30}


def test_a_result_lists_its_problems(tmp_path: Path) -> None:
    minutes = 2 * usage.SETTLED_MINUTES + 2
    result = Result(minutes, "2026-11-21T10:00:00Z")
    result.minutes, result.finished = float(minutes), True
    result.samples = [sample(minute, 100 + 2 * minute) for minute in range(minutes + 1)]
    assert result.grown and not result.good
    result.save(tmp_path)
    assert json.loads((tmp_path / "cluster_soak.json").read_text())["grown"] == result.grown
    assert result.grown[0] in (tmp_path / "cluster_soak.md").read_text()


def test_a_run_too_short_to_settle_has_no_growth() -> None:
    result = Result(3, "2026-11-21T10:00:00Z")
    result.minutes, result.finished = 3.0, True
    result.samples = [sample(0, 10), sample(1, 90)]
    assert result.good
