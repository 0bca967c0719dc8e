"""A long recording is judged in the memory of a short one, and with the same result."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from reveal_analyzer.derive.deriver import Deriver, Second
from reveal_analyzer.offline import judgement, sample
from reveal_contract.channels import ChannelTable
from reveal_contract.metric import Subsystem
from reveal_contract.settings import AnalyzerSettings
from reveal_contract.time_units import NS_PER_SECOND
from reveal_contract.wire import Message
from support.synthetic_node import TABLE, Node

LOSS = {"network.tcp.retrans_segs": 80.0, "network.tcp.out_segs": 3000.0}
Slice = tuple[Message, ChannelTable]


@cache
def quiet_and_faulty() -> tuple[list[Message], list[Message]]:
    node = Node(seed=2)
    return [node.slice() for _ in range(97)], [node.slice(LOSS) for _ in range(12)]


class Recording:
    """Seconds that are made again for each pass; a fault of 12 s begins at ``fault_s``."""

    def __init__(self, seconds: int, fault_s: int) -> None:
        self._seconds, self._fault = seconds, range(fault_s, fault_s + 12)

    def __iter__(self) -> Iterator[Slice]:
        quiet, faulty = quiet_and_faulty()
        for second in range(self._seconds):
            is_faulty = second in self._fault
            of = faulty[second - self._fault.start] if is_faulty else quiet[second % len(quiet)]
            start_ns = quiet[0].start_ns + second * NS_PER_SECOND
            yield replace(of, sequence=second, start_ns=start_ns), TABLE


class CountingDeriver(Deriver):
    """Counts the seconds whose values are in memory."""

    alive = most = 0

    def second(self, message: Message, table: ChannelTable) -> Second:
        found = super().second(message, table)
        weakref.finalize(found.values, self._freed)
        CountingDeriver.alive += 1
        CountingDeriver.most = max(self.most, self.alive)
        return found

    @staticmethod
    def _freed() -> None:
        CountingDeriver.alive -= 1


@pytest.fixture
def small_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample, "MAX_SECONDS", 130)


@pytest.mark.usefixtures("small_sample")
def test_a_long_recording_is_never_in_memory_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judgement, "Deriver", CountingDeriver)
    judgement.judge(Recording(500, fault_s=20), AnalyzerSettings())
    assert 0 < CountingDeriver.most < 150


@pytest.mark.usefixtures("small_sample")
def test_a_sample_as_reference_finds_the_same_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    (sampled,) = judgement.judge(Recording(400, fault_s=20), AnalyzerSettings())
    monkeypatch.setattr(sample, "MAX_SECONDS", 400)
    (complete,) = judgement.judge(Recording(400, fault_s=20), AnalyzerSettings())
    assert sampled.subsystem is Subsystem.NETWORK
    assert (sampled.id, sampled.hypothesis) == (complete.id, complete.hypothesis)
    assert abs(sampled.last_observed_ns - complete.last_observed_ns) <= 2 * NS_PER_SECOND


def test_a_sample_keeps_the_seconds_before_each_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sample, "MAX_SECONDS", 4)
    deriver, taken = Deriver(), sample.SecondsSample(depth=3)
    for message, table in Recording(60, fault_s=100):
        taken.add(deriver.second(message, table))
    assert (taken.step, taken.count, taken.indices.tolist()) == (16, 60, [0, 16, 32, 48])
    assert [index for index, _ in taken.kept()] == [0, 14, 15, 16, 30, 31, 32, 46, 47, 48]


def test_columns_of_an_earlier_table_are_aligned_by_name() -> None:
    alignment = sample.Alignment(("a", "b", "c"))
    np.testing.assert_array_equal(alignment.align(("c", "a"), np.array([3.0, 1.0])), [1, 0, 3])
    now = alignment.align(("a", "b", "c"), np.array([1.0, np.nan, 3.0]))
    np.testing.assert_array_equal(now, [1, np.nan, 3])


def test_slices_that_can_be_read_only_once_are_refused() -> None:
    with pytest.raises(TypeError, match="only one pass"):
        judgement.judge(iter(Recording(200, 20)), AnalyzerSettings())
