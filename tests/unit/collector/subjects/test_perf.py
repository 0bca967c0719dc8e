"""Events of subjects: counts that are not known are missing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from reveal_collector.kernel_interfaces.errors import LayoutChanged
from reveal_collector.kernel_interfaces.perf_event import PerfEvent
from reveal_collector.readers.source import Roots
from reveal_collector.subjects import perf
from reveal_collector.subjects.tracker import CgroupSubject


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


class Tracker:
    """Subjects whose clocks a test sets."""

    def __init__(self, *paths: str) -> None:
        self.current = tuple(CgroupSubject(path, 1, path) for path in paths)
        self.clocks = dict.fromkeys(self.current, 0)
        self.trees: dict[str, Path] = {}

    def start(self) -> None: ...

    def stop(self) -> None: ...


def test_a_busy_job_is_counted_beside_daemons_that_used_more_in_their_life(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr(perf, "CgroupPerfGroup", Group)
    monkeypatch.setattr(perf, "online", lambda sys: [0])
    monkeypatch.setattr(perf, "time", SimpleNamespace(monotonic=lambda: now))
    paths = [f"/daemon{number}" for number in range(20)]
    for path in (*paths, "/trainer"):
        (tmp_path / f"perf_event{path}").mkdir(parents=True)
    tracker = Tracker(*paths, "/trainer")
    *daemons, trainer = tracker.current
    for daemon in daemons:
        tracker.clocks[daemon] = 100 * 86_400 * 30_000_000  # 100 days at 3 %
    tables = []
    source = perf.SubjectEvents(Roots(cgroup=tmp_path), tracker)  # type: ignore[arg-type]
    monkeypatch.setattr(Roots, "live", True)
    source.open()
    for _ in range(300):
        now += 1.0
        for subject in tracker.current:
            tracker.clocks[subject] += 8_000_000_000 if subject is trainer else 30_000_000
        try:
            source.read()
        except LayoutChanged:
            tables.append({each.instance for each in source.channels})
    assert len(tables) == 1
    assert "/trainer" in tables[0]
    assert len(tables[0]) == perf.MAX_SUBJECTS
