"""A walk over the cgroups that hangs: it is stated, and a defect does not end the walks."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from reveal_collector.readers.source import Outage, Roots
from reveal_collector.subjects import tracker as module
from reveal_collector.subjects.cgroup_files import hierarchies
from reveal_collector.subjects.cgroups import CgroupUsage
from reveal_collector.subjects.processes import ProcessGroups
from reveal_collector.subjects.tracker import SubjectSelection, SubjectTracker


def test_a_walk_that_does_not_end_is_an_outage(tmp_path: Path) -> None:
    tracker = SubjectTracker(hierarchies(tmp_path), SubjectSelection())
    groups = ProcessGroups(Roots(tmp_path), None, tracker.selection)
    source = CgroupUsage(Roots(cgroup=tmp_path), tracker, groups)
    assert source.outage() is None
    tracker.walking_since_ns = 7
    assert source.outage() == Outage(7, "the search for new cgroups has not ended")


def test_a_defect_in_a_walk_does_not_end_the_walks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tracker = SubjectTracker(hierarchies(tmp_path), SubjectSelection())
    walks, twice = list[int](), threading.Event()

    def fail(now: float, found: object = None) -> None:
        if threading.current_thread() is threading.main_thread():
            return
        walks.append(tracker.walking_since_ns)
        if len(walks) > 1:
            twice.set()
        raise KeyError("a defect")

    def no_inotify() -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(module, "Inotify", no_inotify)
    monkeypatch.setattr(module, "_RESCAN_WITHOUT_WATCH_S", 0.01)
    monkeypatch.setattr(tracker, "update", fail)
    tracker.start()
    try:
        assert twice.wait(10)
    finally:
        tracker.stop()
    assert all(since_ns > 0 for since_ns in walks)
    assert tracker.walking_since_ns == 0
