from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from scenario_detection import CLIPS
from scenariobench import clip_file
from scenariobench.library import Library
from scenariobench.rows import planned
from scenariobench.timeline import AnalyzerChange, Timeline
from support.synthetic_clips import faulty, healthy

FAULTS = (
    "cpu_contend",
    "hugepages",
    "loss_5",
    "memcg_thrash",
    "oom_kill",
    "cpu_quota",
    "slow_disk",
)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """A clip of each of these faults in one session, and a healthy recording."""
    folder = tmp_path_factory.mktemp("clips")
    clip_file.write(healthy("train-base-one"), folder)
    clip_file.write(healthy("mixed-healthy-two-0"), folder)
    clip_file.write(healthy("mixed-healthy-two-1"), folder)
    for name in FAULTS:
        clip = faulty()
        assert clip.fault is not None
        fault = replace(clip.fault, name=name)
        clip_file.write(replace(clip, name=f"one-{name}", fault=fault), folder)
    return Library(folder)


@pytest.fixture(scope="module")
def timelines(library: Library) -> list[Timeline]:
    return [plan.make() for plan in planned(library)]


def test_each_timeline_is_as_planned(library: Library) -> None:
    plans = planned(library)
    assert [plan.label for plan in plans] == [plan.make().label for plan in plans]
    assert max(Counter(plan.label for plan in plans).values()) == 1


def test_nodes_have_names_of_their_own(timelines: list[Timeline]) -> None:
    assert len({each.node for each in timelines}) == len(timelines)


def test_faults_end_early_enough_to_resolve(timelines: list[Timeline]) -> None:
    ends = [
        (each.seconds, truth)
        for each in timelines
        for truth in each.truths
        if truth.end < each.seconds
    ]
    assert ends
    assert all(truth.end + truth.resolve_within < seconds for seconds, truth in ends)


def test_faults_that_are_played_themselves_do_not_overlap(timelines: list[Timeline]) -> None:
    for each in timelines:
        played = sorted((s.start, s.start + s.seconds) for s in each.spans if not s.layered)
        assert all(end < start for (_, end), (start, _) in pairwise(played))


def test_every_change_of_the_analyzer_comes_four_times(timelines: list[Timeline]) -> None:
    events = [each.events[0].change for each in timelines if each.row == "analyzer"]
    assert Counter(events) == dict.fromkeys(AnalyzerChange, 4)
    assert {
        each.events[0].change for each in timelines if each.row == "healthy" and each.events
    } == {*AnalyzerChange}


def test_healthy_timelines_have_no_faults(timelines: list[Timeline]) -> None:
    quiet = [each for each in timelines if each.row == "healthy"]
    assert not any(each.truths for each in quiet)
    assert all(span.start > each.seconds for each in quiet for span in each.spans)


def test_the_base_of_a_fault_is_of_its_session(library: Library) -> None:
    clip = library.fault("loss_5", "train")
    assert clip is not None
    names = [each.name for each in library.base(clip)]
    assert names[0] == "train-base-one"
    assert set(names[1:]) == {f"one-{name}-lead" for name in FAULTS}


def test_a_folder_without_clips_is_refused(tmp_path: Path) -> None:
    with pytest.raises(clip_file.ClipError, match="there are no clips"):
        Library(tmp_path)


@pytest.mark.skipif(not CLIPS.exists(), reason="the clips are not there yet")
def test_the_committed_clips_are_enough() -> None:
    library = Library(CLIPS)
    plans = planned(library)
    assert len(plans) >= 60
    assert {plan.row for plan in plans} == {
        "lasting", "two", "again", "analyzer", "disturbed", "healthy",
    }  # fmt: skip
    assert sum(path.stat().st_size for path in CLIPS.glob("*.clip")) <= 20 * 2**20


@pytest.mark.skipif(not CLIPS.exists(), reason="the clips are not there yet")
def test_the_committed_clips_play_each_fault_once_and_every_workload() -> None:
    plans = [plan for plan in planned(Library(CLIPS)) if plan.row == "lasting"]
    _, workloads, faults = zip(*(plan.name.split("-") for plan in plans), strict=True)
    assert {*workloads} == {"train", "server", "loader"}
    assert max(Counter(faults).values()) == 1
