"""The 50 Hz lane: selected subjects, CPU time of a fifth of a tick, missing readings."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_collector import native
from reveal_collector.kernel_interfaces.errors import LayoutChanged
from reveal_collector.subjects import fine_cpu, fine_grid
from reveal_collector.subjects.cgroup_files import hierarchies
from reveal_collector.subjects.fine_cpu import MAX_SUBJECTS, STEPS_PER_TICK, BusySubjects, FineCpu
from reveal_collector.subjects.fine_grid import CounterFile, SampleRings
from reveal_collector.subjects.tracker import CgroupSubject, SubjectSelection, SubjectTracker
from support.hosts.cgroups import V1, Layout, add_cgroups
from support.hosts.tree import Tree
from support.polling import becomes_true
from support.property_tests import examples

JOB = "/system.slice/job.service"


def subject(path: str) -> CgroupSubject:
    return CgroupSubject(path, 1, path)


@examples(100)
@given(st.lists(st.integers(0, 10**9), min_size=2, max_size=60), st.sets(st.integers(0, 59)))
def test_the_usage_of_steps_adds_up_and_unread_steps_are_missing(
    totals: list[int], missed: set[int]
) -> None:
    rings = SampleRings(2)
    readings = sorted(totals)
    for step, total in enumerate(readings):
        if step not in missed:
            rings.store(1, step, total)
    last = len(readings) - 1
    for step, used in enumerate(rings.increases(1, last, last), 1):
        if step in missed or step - 1 in missed:
            assert used is None
        else:
            assert used == readings[step] - readings[step - 1]
    assert rings.increases(1, last + 64, 5) == [None] * 5
    assert rings.increases(0, 5, 5) == [None] * 5
    rings.clear(1)
    assert rings.increases(1, 62, 62) == [None] * 62


def test_busy_subjects_are_selected_and_stay_where_they_were() -> None:
    busy = BusySubjects()
    first, second = subject("/a"), subject("/b")
    assert busy.choose({first: 0, second: 0}, 0.0) == []
    assert busy.choose({first: 40_000_000, second: 60_000_000}, 1.0) == [second]
    assert busy.choose({first: 140_000_000, second: 60_000_000}, 2.0) == [first, second]
    later = {first: 240_000_000, second: 60_000_000}
    assert busy.choose(later, 3.0) == [first, second]
    assert busy.active == {first, second}
    assert busy.choose(later, 32.0) == [first, second]
    assert busy.active == {first}  # the other was idle for half a minute
    assert busy.choose({second: 60_000_000}, 33.0) == [second]
    assert busy.choose({}, 34.0) == []


def test_no_more_than_so_many() -> None:
    busy = BusySubjects()
    subjects = [subject(f"/{index:02}") for index in range(MAX_SUBJECTS + 9)]
    busy.choose(dict.fromkeys(subjects, 0), 0.0)
    used = {item: 100_000_000 + index for index, item in enumerate(subjects)}
    assert set(busy.choose(used, 1.0)) == set(subjects[9:])


def test_subjects_of_similar_use_keep_their_columns() -> None:
    rng = random.Random(1)
    busy = BusySubjects()
    clocks = {subject(f"/{index:02}"): 0 for index in range(MAX_SUBJECTS + 4)}
    chosen = []
    for second in range(300):
        for item in clocks:
            clocks[item] += round(0.33e9 * rng.gauss(1, 0.1))
        chosen.append(busy.choose(clocks, float(second)))
    assert len(chosen[-1]) == MAX_SUBJECTS
    assert chosen[1:] == [chosen[-1]] * 299


def lane(tmp_path: Path) -> tuple[Tree, SubjectTracker, FineCpu]:
    tree = Tree(tmp_path)
    add_cgroups(tree, Layout(V1), (), {JOB: (0.5, 900)})
    tracker = SubjectTracker(hierarchies(tree.roots.cgroup), SubjectSelection())
    tracker._users = 1
    tracker.update(0.0)
    return tree, tracker, FineCpu(tracker)


def followed(fine: FineCpu, tracker: SubjectTracker) -> bool:
    """Let the subject use CPU time in the fast clock source until it has columns."""
    (job,) = tracker.current
    for turn in range(40):
        tracker.clocks[job] = turn * 1_000_000_000
        try:
            fine.read()
        except LayoutChanged:
            return True
    return False


class FakeTime:
    """The clock of the lane, set by a test."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds

    def monotonic_ns(self) -> int:
        return round(self.seconds * 1e9)


eventually = partial(becomes_true, seconds=10)


@pytest.fixture(params=["C", "Python"])
def language(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a test with both implementations of the lane's thread."""
    if request.param == "Python":
        monkeypatch.setattr(native, "load", lambda: native.LoadedLibrary(None, "not here"))
    elif not hasattr(native.load().library, "reveal_fine_start"):
        pytest.skip("the C parts are not built")


@pytest.mark.usefixtures("language")
def test_what_is_no_number_and_what_is_gone_is_missing(tmp_path: Path) -> None:
    texts = ["usage_usec 1234567\nuser_usec 9\n", "usage_usec x", "", "usage_usec ",
             "usage_usec 99999999999999999999\n"]  # fmt: skip
    rings = SampleRings(len(texts))
    reader = fine_grid.start_sampling_thread(rings, 2_000_000)
    files = []
    try:
        for slot, text in enumerate(texts):
            path = tmp_path / str(slot)
            path.write_text(text)
            files.append(path.open("rb"))
            reader.assign(slot, CounterFile(files[-1].fileno(), 11, 10))
        ring = fine_grid.RING_STEPS
        assert eventually(lambda: sum(step >= 0 for step in rings.steps[:ring]) > 3)
        assert {used for used in rings.values[:ring] if used} == {123456}
        assert set(rings.steps[ring:]) == {-1}
        reader.assign(0, None)
        assert max(rings.steps[:ring]) == -1
    finally:
        reader.stop()
        for file in files:
            file.close()


def replace_file(file: Path, value: int) -> None:
    """Replace a file atomically; a reader would find a truncated file empty."""
    with file.open("r+b", buffering=0) as opened:
        opened.write(f"{value}\n".encode())


@pytest.mark.usefixtures("language")
def test_a_busy_subject_gets_five_columns_a_tick_of_real_readings(tmp_path: Path) -> None:
    tree, tracker, fine = lane(tmp_path)
    usage = tree.root / f"cgroup/cpuacct{JOB}/cpuacct.usage"
    fine.open()
    try:
        assert fine.channels == ()
        assert followed(fine, tracker)
        assert [channel.instance for channel in fine.channels] == [
            f"{JOB}#{number}" for number in range(1, STEPS_PER_TICK + 1)
        ]
        assert {channel.scale for channel in fine.channels} == {1000.0}
        assert eventually(lambda: list(fine.read()) == [0] * STEPS_PER_TICK)

        def works() -> bool:
            """Another step each time: on a busy host a look may come when one is past."""
            replace_file(usage, int(usage.read_text()) + 7_000_000)
            steps = [step for step in fine.read() if step]
            return bool(steps) and all(step is not None and step % 7000 == 0 for step in steps)

        assert eventually(works)
        assert eventually(lambda: list(fine.read()) == [0] * STEPS_PER_TICK)
        usage.unlink()
    finally:
        fine.close()
    assert fine.channels == ()


def test_a_subject_that_became_idle_keeps_its_columns_and_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, tracker, fine = lane(tmp_path)
    now = FakeTime()
    monkeypatch.setattr(fine_cpu, "time", now)
    fine.open()
    try:
        assert followed(fine, tracker)
        columns = fine.channels
        assert len(fine._slots) == 1
        now.seconds += 31
        assert list(fine.read()) == [None] * STEPS_PER_TICK
        assert fine.channels is columns
        assert not fine._slots  # its thread sleeps
        now.seconds += 1
        (job,) = tracker.current
        tracker.clocks[job] += 1_000_000_000
        fine.read()
        assert fine.channels is columns
        assert len(fine._slots) == 1
    finally:
        fine.close()


def test_a_paused_lane_has_no_columns_until_it_goes_on(tmp_path: Path) -> None:
    _, tracker, fine = lane(tmp_path)
    fine.open()
    try:
        assert followed(fine, tracker)
        fine.paused = True
        assert followed(fine, tracker)  # the columns go away
        assert fine.channels == ()
        fine.paused = False
        assert followed(fine, tracker)
        assert len(fine.channels) == STEPS_PER_TICK
    finally:
        fine.close()
