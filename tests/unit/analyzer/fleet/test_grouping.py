"""Groups of nodes with the same work: a fault on a node does not take it out of its group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from reveal_analyzer.fleet.grouping import (
    OTHER_JOBS_MINUTES,
    OTHER_LEVELS_MINUTES,
    WorkloadGroups,
)
from reveal_analyzer.fleet.summary import Summary
from reveal_analyzer.fleet.workload import USAGE
from support.fleet_summaries import summary, working

TRAIN = ("/train x 1",)
BOTH = ("/kubelet x 1", "/train x 1")


def healthy(count: int = 8, uses: Mapping[str, float] | None = None) -> list[Summary]:
    return [working(f"n{number}", uses or {"/train": 2e9, "/kubelet": 0.08e9})
            for number in range(count)]  # fmt: skip


class Fleet:
    """Some equal nodes and an odd one, minute by minute."""

    def __init__(self, groups: WorkloadGroups | None = None, minute: int = 0) -> None:
        self.groups, self.minute = groups or WorkloadGroups(), minute

    def workload(self, odd: Summary, others: list[Summary] | None = None) -> tuple[str, ...]:
        """Add a minute; return the workload by which the odd node is compared."""
        self.minute += 1
        nodes = [odd, *(healthy() if others is None else others)]
        assigned = self.groups.assign([replace(node, minute=self.minute) for node in nodes])
        return assigned[0].workload

    def minutes(self, count: int, uses: Mapping[str, float]) -> list[tuple[str, ...]]:
        return [self.workload(working("odd", uses)) for _ in range(count)]


def started(minutes: int = 3, uses: Mapping[str, float] | None = None) -> Fleet:
    fleet = Fleet()
    fleet.minutes(minutes, uses or {"/train": 2e9, "/kubelet": 0.08e9})
    return fleet


@pytest.mark.parametrize("use", [1e9, 0.75e9, 0.6e9, 0.2e9, 0.06e9])
def test_a_job_that_a_fault_slows_is_the_work_of_the_node_as_before(use: float) -> None:
    found = started().minutes(40, {"/train": use, "/kubelet": 0.08e9})
    assert set(found) == {TRAIN}


def test_a_daemon_that_runs_away_changes_no_group() -> None:
    found = started(11).minutes(40, {"/train": 2e9, "/kubelet": 3e9})
    assert set(found) == {TRAIN}


def test_a_daemon_that_begins_to_be_counted_is_no_work_by_what_the_group_uses() -> None:
    alone = {"/train": 2e9}
    found = started(3, alone).minutes(40, {"/train": 0.4e9, "/kubelet": 0.06e9})
    assert set(found) == {TRAIN}


def test_another_job_is_other_work_from_the_third_minute_on() -> None:
    found = started().minutes(6, {"/train": 2e9, "/kubelet": 0.08e9, "/serve": 4e9})
    waits = OTHER_JOBS_MINUTES - 1
    assert found == [TRAIN] * waits + [("/serve x 1", "/train x 1")] * (6 - waits)


def test_a_job_that_starts_slowly_is_other_work_as_soon_as_it_is_large() -> None:
    fleet = started()
    assert fleet.minutes(2, {"/train": 2e9, "/serve": 0.06e9}) == [TRAIN] * 2
    assert fleet.minutes(4, {"/train": 2e9, "/serve": 4e9})[-1] == ("/serve x 1", "/train x 1")


def test_the_end_of_a_job_ends_its_group() -> None:
    assert started().minutes(4, {"/kubelet": 0.08e9})[-2:] == [("/kubelet x 1",)] * 2
    assert started().minutes(4, {})[-2:] == [()] * 2


def pods(*counts: int) -> list[Summary]:
    """Return the minutes of a node with so many pods of a job."""
    return [working("odd", {"/train": 2e9}, counts={"/train": count}) for count in counts]


@pytest.mark.parametrize("counts", [(2, 1, 2), (2, 3, 2), (2, 1, 3, 2), (2, 1, 1, 2, 1, 1, 2)])
def test_a_pod_that_restarts_changes_no_group(counts: tuple[int, ...]) -> None:
    fleet = Fleet()
    assert {fleet.workload(node) for node in pods(*counts)} == {("/train x 2",)}


def test_another_number_of_pods_that_lasts_is_another_group() -> None:
    fleet = Fleet()
    found = [fleet.workload(node) for node in pods(2, 1, 1, 1, 1)]
    assert found == [("/train x 2",)] * 3 + [("/train x 1",)] * 2


def test_a_node_that_looks_like_another_group_for_long_joins_it() -> None:
    fleet = Fleet()
    others = healthy(4) + [
        replace(node, node=f"b{node.node}")
        for node in healthy(4, {"/train": 0.5e9, "/kubelet": 0.3e9})
    ]
    first = working("odd", {"/train": 0.5e9, "/kubelet": 0.3e9})
    assert fleet.workload(first, others) == BOTH
    later = working("odd", {"/train": 2e9, "/kubelet": 0.08e9})
    found = [fleet.workload(later, others) for _ in range(OTHER_LEVELS_MINUTES + 2)]
    assert found == [BOTH] * (OTHER_LEVELS_MINUTES - 1) + [TRAIN] * 3


def test_a_minute_counts_once_and_a_part_of_a_minute_not() -> None:
    fleet, other = started(), working("odd", {"/serve": 2e9})
    nodes = [replace(node, minute=7) for node in (other, *healthy())]
    assert {fleet.groups.assign(nodes)[0].workload for _ in range(9)} == {TRAIN}
    incomplete = replace(other, seconds=20)
    assert {fleet.workload(incomplete) for _ in range(9)} == {TRAIN}


def test_a_node_that_left_begins_with_what_it_does() -> None:
    fleet = started()
    fleet.groups.drop(["odd", "never there"])
    assert fleet.minutes(1, {"/serve": 2e9}) == [("/serve x 1",)]


def test_a_new_leader_keeps_the_groups() -> None:
    first, sick = started(), {"/train": 0.3e9, "/kubelet": 0.08e9}
    first.minutes(3, sick)
    last = [working("odd", sick), *healthy()]
    rows = first.groups.rows(last)
    assert rows == [["odd", list(TRAIN)]]
    heir = WorkloadGroups()
    heir.load([None, 7, ["odd"], ["odd", [1]], ["odd", "x"], *rows])
    assert set(Fleet(heir, first.minute).minutes(40, sick)) == {TRAIN}


def test_a_change_of_jobs_that_is_not_decided_is_not_handed_over() -> None:
    fleet = started()
    fleet.minutes(1, {"/serve": 2e9})
    assert fleet.groups.rows([working("odd", {"/serve": 2e9})]) == []


@pytest.mark.parametrize("given", [{"jobs": {}}, {"workload": ("a x 1",)}])
def test_summaries_keep_all_but_their_workload(given: dict[str, Any]) -> None:
    node = summary("n", **given)
    groups = WorkloadGroups()
    assert groups.assigned(node) is node
    assert groups.assign([node]) == [node]


def test_a_job_whose_cpu_time_was_not_read_is_there() -> None:
    fleet = started()
    node = working("odd", {"/train": 2e9, "/kubelet": 0.08e9})
    unread = {
        name: replace(job, levels={key: value for key, value in job.levels.items() if key != USAGE})
        for name, job in node.jobs.items()
    }
    assert {fleet.workload(replace(node, jobs=unread)) for _ in range(5)} == {TRAIN}
