"""Findings about subjects that come to a busy host and take time from those that were there."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from reveal_analyzer.node import NodeAnalyzer
from reveal_contract import ledger
from reveal_contract.cpu_shares import CpuGroup, CpuMember, CpuShares
from reveal_contract.finding import FindingChange
from reveal_contract.settings import AnalyzerSettings
from support.ledger_node import Times, ledger_node
from support.ledger_story import BUILD, HOG, JOB, LedgerStory, names

# a job and a build, each on one of the two CPUs; then all three have a third of them: their shares
BUSY = {JOB: Times(run=1.0), BUILD: Times(run=1.0), HOG: Times()}
CROWDED = {
    JOB: Times(run=0.66, cpu={HOG: 0.34}),
    BUILD: Times(run=0.68, cpu={JOB: 0.32}),
    HOG: Times(run=0.66, cpu={BUILD: 0.34}),
}


def opened(story: LedgerStory) -> list[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    """Return cause, culprits and victims of each finding when it opened."""
    found = story.of(FindingChange.OPENED)
    return [
        (name, tuple(each.name for each in finding.subjects), finding.victims)
        for name, (_, finding) in zip(names(found), found, strict=True)
    ]


def test_who_comes_and_takes_from_others_is_found_though_all_have_their_shares() -> None:
    story = LedgerStory()
    story.run(120, BUSY)
    story.run(400, CROWDED)
    story.run(30, BUSY)
    assert opened(story) == [("CPUTakenByNeighbor", (HOG,), (JOB,))]
    assert 124 <= story.of(FindingChange.OPENED)[0][0] <= 126
    ((resolved, last),) = story.of(FindingChange.RESOLVED)
    assert 520 <= resolved <= 535
    assert [each.name for each in last.subjects] == [HOG]


def test_what_is_as_old_as_the_ledger_is_no_newcomer() -> None:
    story = LedgerStory()
    story.run(200, CROWDED)
    assert story.updates == []


def test_a_newcomer_is_known_after_a_restart() -> None:
    story = LedgerStory()
    story.run(120, BUSY)
    story.run(200, CROWDED)
    tree = story.analyzer.save()
    story.analyzer = NodeAnalyzer("n1", AnalyzerSettings(warmup_seconds=60))
    story.analyzer.restore(tree)
    story.run(200, CROWDED)
    assert story.of(FindingChange.RESOLVED) == []
    story.run(30, BUSY)
    assert len(story.of(FindingChange.OPENED)) == len(story.of(FindingChange.RESOLVED)) == 1


def test_a_job_that_itself_wants_more_than_before_is_no_victim() -> None:
    story = LedgerStory()
    story.run(120, {**BUSY, JOB: Times(run=0.3), HOG: Times(run=0.3)})
    story.run(60, {**CROWDED, BUILD: Times(run=0.68), HOG: Times(run=0.66)})
    assert story.updates == []


def test_a_neighbor_that_was_there_a_minute_ago_is_no_newcomer() -> None:
    story = LedgerStory()
    story.run(120, BUSY)
    story.run(20, CROWDED)
    story.run(20, BUSY)
    story.run(20, CROWDED)
    assert len(story.of(FindingChange.OPENED)) == 1


def test_a_neighbor_that_comes_again_after_minutes_is_another_finding() -> None:
    story = LedgerStory()
    for _ in range(2):
        story.run(120, BUSY)
        story.run(20, CROWDED)
    assert opened(story) == [("CPUTakenByNeighbor", (HOG,), (JOB,))] * 2


@pytest.mark.parametrize(("weight", "count"), [(3000, 1), (4096, 0)])
def test_a_newcomer_with_priority_takes_what_is_its_own(weight: float, count: int) -> None:
    groups = tuple(CpuGroup(name, weight=weight if name == HOG else 1024) for name in BUSY)
    story = LedgerStory()
    story.announce(CpuShares(groups, tuple(CpuMember(name, name) for name in BUSY)))
    story.run(120, BUSY)
    story.run(60, {JOB: Times(run=0.4, cpu={HOG: 0.6}), BUILD: Times(run=0.6), HOG: Times(run=1.0)})
    assert len(story.of(FindingChange.OPENED)) == count


def test_who_was_displaced_by_a_newcomer_is_not_to_blame() -> None:
    """The job waits for the build that the hog pushed to its CPU, before and after the hog."""
    story = LedgerStory()
    story.run(120, {**BUSY, JOB: Times(run=0.5)})
    displaced: Mapping[str, Times] = {
        JOB: Times(run=0.2, cpu={BUILD: 0.15}), BUILD: Times(run=0.9, cpu={HOG: 0.1}),
    }  # fmt: skip
    story.run(2, {**displaced, HOG: Times(run=0.9)})
    both = {**displaced, JOB: Times(run=0.2, cpu={BUILD: 0.16, HOG: 0.15})}
    story.run(30, {**both, HOG: Times(run=0.9)})
    assert opened(story) == [("CPUTakenByNeighbor", (HOG,), (JOB,))]


def test_who_was_displaced_by_threads_of_the_kernel_is_not_to_blame() -> None:
    """As while another group syncs its files: the job waits for the build beside them."""
    story = LedgerStory()
    story.node = ledger_node(JOB, HOG, BUILD, ledger.KERNEL)
    calm = {JOB: Times(run=0.6), BUILD: Times(run=1.2, threads=2), ledger.KERNEL: Times(run=0.02)}
    story.run(120, calm)
    pushed = Times(run=0.4, cpu={BUILD: 0.2})
    story.run(60, {**calm, JOB: pushed, ledger.KERNEL: Times(run=0.4)})
    assert opened(story) == []
    story.run(60, {**calm, JOB: pushed, BUILD: Times(run=1.8, threads=2)})
    assert opened(story) == [("CPUTakenByNeighbor", (BUILD,), (JOB,))]


def test_who_took_time_before_the_newcomer_came_is_still_to_blame() -> None:
    story = LedgerStory()
    greedy = {JOB: Times(run=0.5, cpu={BUILD: 0.5}), BUILD: Times(run=1.5, threads=2)}
    story.run(120, {**greedy, HOG: Times()})
    crowd = {JOB: Times(run=0.4, cpu={BUILD: 0.4, HOG: 0.2}), BUILD: Times(run=1.2, threads=2)}
    story.run(60, {**crowd, HOG: Times(run=0.4)})
    assert (opened(story)[0], story.of(FindingChange.RESOLVED)) == (
        ("CPUTakenByNeighbor", (BUILD,), (JOB,)), [],
    )  # fmt: skip


def test_a_ledger_that_was_off_makes_nobody_a_newcomer() -> None:
    story = LedgerStory()
    story.run(120, CROWDED)
    story.run(90, {})
    story.run(90, CROWDED)
    assert story.updates == []
    assert ledger.LOST_CPU in {channel.metric for channel in story.node.table.slow}
