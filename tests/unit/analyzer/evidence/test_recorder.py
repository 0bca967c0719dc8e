"""The recorder without its thread: steps, references, failures, and what others left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
import redis

from reveal_analyzer.evidence.follows import MOST_FOLLOWED, STEP_S
from reveal_analyzer.evidence.piece import EvidenceWriter
from reveal_analyzer.evidence.recorder import (
    BEHIND_SECONDS,
    RESUME_SECONDS,
    UNCLAIMED_SECONDS,
    EvidenceRecorder,
)
from reveal_contract.finding import EvidenceRef, FindingChange, FindingScope, FindingUpdate
from reveal_contract.names import shard
from support.evidence_samples import ListedSlices, MemoryStore, finding, slices
from support.fake_clock import FakeClock

NAME = "cpu-0123456789"


@dataclass
class FailingStore(MemoryStore):
    """A store that fails as ``error`` says."""

    error: Exception | None = None

    def put(self, name: str, data: bytes, unfinished: Mapping[str, Any] | None) -> None:
        if self.error is not None:
            raise self.error
        super().put(name, data, unfinished)


class Bench:
    """A recorder on a clock that moves by hand."""

    def __init__(self, store: MemoryStore | None = None) -> None:
        self.clock, self.store = FakeClock(), store or FailingStore()
        self.source = ListedSlices(slices(400), now=108)
        writer = EvidenceWriter(self.source, self.store, 10**6)
        self.recorder = EvidenceRecorder(writer, self.clock)

    def write(self, change: FindingChange, end: int | None = None, **other: Any) -> None:
        self.recorder.write(FindingUpdate(change, finding(100, end, **other)))

    def open(self, **other: Any) -> None:
        self.write(FindingChange.OPENED, **other)

    def run(self, seconds: int) -> None:
        for _ in range(seconds):
            self.clock.now += 1
            self.source.now += 1
            self.recorder.run_due()


def left_by_another() -> tuple[MemoryStore, Bench]:
    """Return a store with an open finding that an analyzer left, and the next analyzer."""
    store = MemoryStore()
    first = Bench(store)
    first.open()
    first.run(6)
    return store, Bench(store)


def test_a_finding_refers_to_its_samples_once_they_are_kept() -> None:
    bench = Bench()
    update = FindingUpdate(FindingChange.OPENED, finding(100))
    bench.open()
    assert bench.recorder.referenced(update) == update
    assert bench.recorder.newly_kept() == []
    bench.run(4)
    [kept] = bench.recorder.newly_kept()
    assert kept.change is FindingChange.CHANGED
    ref = EvidenceRef("Redis", NAME)
    assert bench.recorder.referenced(kept).finding.evidence_ref == ref
    bench.write(FindingChange.RESOLVED, end=110)
    bench.run(100)
    assert bench.store.unfinished() == {}
    resolved = FindingUpdate(FindingChange.RESOLVED, finding(100, end=110))
    assert bench.recorder.referenced(resolved).finding.evidence_ref == ref


@pytest.mark.parametrize(
    "error", [redis.ConnectionError("gone"), OSError(28, "No space left"), ValueError("a defect")]
)
def test_what_cannot_be_kept_is_a_degradation_until_it_can(error: Exception) -> None:
    store = FailingStore(error=error)
    bench = Bench(store)
    bench.open()
    bench.run(4)
    [lost] = bench.recorder.degradations()
    assert (lost.reason, lost.nodes) == ("EvidenceNotKept", 1)
    assert NAME in lost.message
    assert bench.recorder.newly_kept() == []
    store.error = None
    bench.run(int(STEP_S) + 1)
    assert bench.recorder.degradations() == []
    assert len(bench.recorder.newly_kept()) == 1


def test_an_old_failure_is_no_degradation_any_more() -> None:
    bench = Bench(FailingStore(error=OSError(28, "No space left")))
    bench.open()
    bench.run(4)
    bench.recorder.forget("n1")
    bench.clock.now += 121
    assert bench.recorder.degradations() == []


def test_findings_over_the_limit_are_a_degradation() -> None:
    bench = Bench()
    for number in range(MOST_FOLLOWED + 1):
        bench.recorder.write(
            FindingUpdate(
                FindingChange.OPENED, finding(100, node_name=f"n{number}", id=f"{number}")
            )
        )
    [lost] = bench.recorder.degradations()
    assert f"n{MOST_FOLLOWED}" in lost.message


def test_what_another_analyzer_left_unfinished_is_completed_by_the_owner_of_the_node() -> None:
    store = MemoryStore()
    first = Bench(store)
    first.open()
    first.run(6)
    first.write(FindingChange.RESOLVED, end=113)
    first.run(1)
    assert set(store.left) == {NAME}
    second = Bench(store)
    second.source.now = 130
    second.run(2)
    assert set(store.left) == {NAME}  # it owns nothing yet
    second.recorder.watch([shard("n1")])
    second.run(int(RESUME_SECONDS) + 70)
    assert store.left == {}


def test_an_open_finding_that_nobody_observes_is_completed() -> None:
    """The analyzer before ended between the end of the finding and its next step."""
    store, second = left_by_another()
    second.source.now = 115
    second.recorder.watch([shard("n1")])
    second.run(int(UNCLAIMED_SECONDS))
    assert set(store.left) == {NAME}  # it may still come, with what was saved of the node
    second.run(int(RESUME_SECONDS) + 70)
    assert store.left == {}


def test_an_open_finding_that_is_observed_again_goes_on() -> None:
    store, second = left_by_another()
    second.source.now = 115
    second.recorder.watch([shard("n1")])
    second.write(FindingChange.CHANGED)
    second.run(int(UNCLAIMED_SECONDS + RESUME_SECONDS) + 70)
    assert set(store.left) == {NAME}


def test_a_restarted_analyzer_refers_to_samples_of_its_predecessor() -> None:
    _, second = left_by_another()
    second.recorder.watch([shard("n1")])
    second.run(1)
    update = FindingUpdate(FindingChange.RESOLVED, finding(100, end=110))
    assert second.recorder.referenced(update).finding.evidence_ref == EvidenceRef("Redis", NAME)


def test_findings_across_nodes_are_left_to_the_next_leader() -> None:
    store = MemoryStore()
    former, leader = Bench(store), Bench(store)
    former.recorder.watch([], leads=True)
    former.open(scope=FindingScope.CROSS_NODE)
    former.run(6)
    former.recorder.watch([shard("n1")])
    leader.recorder.watch([], leads=True)
    leader.write(FindingChange.CHANGED, scope=FindingScope.CROSS_NODE)
    leader.write(FindingChange.RESOLVED, end=110, scope=FindingScope.CROSS_NODE)
    leader.run(100)
    assert store.left == {}
    former.run(100)
    assert store.left == {}


def test_a_finding_without_samples_has_no_reference() -> None:
    bench = Bench()
    bench.source.slices = []
    bench.open()
    bench.run(30)
    assert bench.recorder.newly_kept() == []
    update = FindingUpdate(FindingChange.CHANGED, finding(100))
    assert bench.recorder.referenced(update) == update


def test_a_late_step_is_a_degradation() -> None:
    bench = Bench()
    bench.open()
    bench.run(4)
    bench.clock.now += STEP_S + BEHIND_SECONDS
    bench.source.now += 108
    bench.run(1)
    [lost] = bench.recorder.degradations()
    assert "earlier" in lost.message


def test_a_node_that_another_analyzer_reads_is_left_to_it() -> None:
    bench = Bench()
    bench.open()
    bench.recorder.forget("n1")
    bench.run(10)
    assert isinstance(bench.store, MemoryStore)
    assert bench.store.kept == {}


def test_a_lost_node_ends_its_findings() -> None:
    bench = Bench()
    bench.open()
    bench.run(4)
    bench.recorder.forget("n1", "it has sent nothing")
    bench.run(100)
    assert bench.store.unfinished() == {}


def test_a_row_of_another_version_is_ignored() -> None:
    bench = Bench()
    assert isinstance(bench.store, MemoryStore)
    bench.store.left = {"a": {}, "b": {"finding": {"id": 5}}, "c": {"finding": []}}
    bench.recorder.watch([shard("n1")])
    bench.run(2)
    assert bench.store.kept == {}
