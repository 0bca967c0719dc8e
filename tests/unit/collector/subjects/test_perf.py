"""Events of subjects: counts that are not known are missing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from reveal_collector.kernel.perf_event import PerfEvent
from reveal_collector.subjects import perf


class Group:
    """The events of a cgroup on a CPU; ``counts`` is None while no hardware counter is free."""

    counts: tuple[int, ...] | None = (1, 2, 3, 4, 5)
    is_offline = False

    def __init__(self, cgroup_fd: int, cpu: int, events: Sequence[PerfEvent]) -> None:
        self.events = list(events)

    def read(self) -> tuple[int, ...] | None:
        return self.counts

    def close(self) -> None: ...


@pytest.fixture
def counters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> perf._CgroupCounters:
    monkeypatch.setattr(perf, "CgroupPerfGroup", Group)
    return perf._CgroupCounters(tmp_path, [0, 1])


def test_a_group_without_a_counter_keeps_its_counts_for_a_moment_only(
    counters: perf._CgroupCounters, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert counters.read() == [2, 4, 6, 8, 10]
    monkeypatch.setattr(Group, "counts", None)
    assert [counters.read() for _ in range(10)] == [[2, 4, 6, 8, 10]] * 10
    assert counters.read() == [None] * 5
    monkeypatch.setattr(Group, "counts", (2, 3, 4, 5, 6))
    assert counters.read() == [4, 6, 8, 10, 12]


def test_nothing_runs_on_a_cpu_that_is_offline(
    counters: perf._CgroupCounters, monkeypatch: pytest.MonkeyPatch
) -> None:
    counters.read()
    monkeypatch.setattr(Group, "counts", None)
    monkeypatch.setattr(Group, "is_offline", True)
    assert [counters.read() for _ in range(30)] == [[2, 4, 6, 8, 10]] * 30
