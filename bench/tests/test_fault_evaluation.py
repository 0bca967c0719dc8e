from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faultbench import summary
from faultbench.evaluation import Judged, TimedUpdate, hidden, outcome, reduced_seconds
from faultbench.other_detector import BesideError, load
from faultbench.recorder import due
from faultbench.recording_index import CaseRow, Index, IndexFileError, read_index
from faultbench.sessions import Case, NothingToJudgeError, Session, Slice, sessions
from faultbench.stats import Share, middle, rate_interval
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.finding import Confidence, Finding, FindingChange, Severity, State, Subject
from reveal_contract.metric import Kind, Lane, Subsystem
from support.redis_streams import message

CASE = Case(
    "cpu_contend", "CPU contention", False, frozenset({Subsystem.CPU}), "/reveal-fault-cpu_contend",
    0.1, begin=88, onset=100, offset=114, end=128,
)  # fmt: skip


def _no_slices() -> Iterator[Slice]:
    return iter(())


SESSION = Session("train-1", Path("train-1.rvl"), "train", 75, 0.1, (CASE,), _no_slices)


def _update(
    seconds: float,
    change: FindingChange = FindingChange.OPENED,
    subsystem: Subsystem = Subsystem.CPU,
    subjects: tuple[str, ...] = (),
    identity: str = "a",
) -> TimedUpdate:
    named = tuple(Subject("Cgroup", name, 50, 50, Confidence.MEASURED) for name in subjects)
    finding = Finding(
        identity, "bench", subsystem, Severity.LOW, State.OPEN, 0, 0, "claim", subjects=named
    )
    return TimedUpdate(seconds, change, finding)


def test_found_in_time_with_the_last_word_on_the_subject() -> None:
    updates = [
        _update(102, FindingChange.SUSPECTED),
        _update(105),
        _update(109, FindingChange.CHANGED, subjects=("/reveal-fault-cpu_contend", "/other")),
    ]
    result = outcome(SESSION, CASE, updates)
    assert (result.suspected, result.found) == (2, 5)
    assert result.subsystem_right
    assert result.subject_right
    assert result.false == 0


def test_a_signature_that_opens_immediately_counts_as_suspected() -> None:
    result = outcome(SESSION, CASE, [_update(101)])
    assert result.suspected == result.found == 1


@pytest.mark.parametrize(
    ("seconds", "found", "false"),
    [(100, False, 1), (100.1, True, 0), (115, True, 0), (115.1, False, 0), (126.1, False, 1)],
)
def test_the_windows(seconds: float, found: bool, false: int) -> None:
    result = outcome(SESSION, CASE, [_update(seconds)])
    assert (result.found is not None, result.false) == (found, false)


def test_the_wrong_subsystem_and_a_second_finding() -> None:
    updates = [_update(105, subsystem=Subsystem.STORAGE), _update(107, identity="b")]
    result = outcome(SESSION, CASE, updates)
    assert not result.subsystem_right
    assert result.others == ("CPU",)


def test_only_the_first_subject_is_judged() -> None:
    second = outcome(SESSION, CASE, [_update(105, subjects=("/x", "/reveal-fault-cpu_contend"))])
    assert second.subject_right is False
    nobody = Case("loss_1", "loss", False, CASE.subsystems, None, 0, 88, 100, 114, 128)
    assert outcome(SESSION, nobody, [_update(105)]).subject_right is None


def test_the_faults_own_cgroup_is_hidden() -> None:
    assert hidden(Channel("cpu.subject.usage", "/reveal-fault-oom_kill"))
    assert not hidden(Channel("cpu.subject.usage", "/reveal-work-train"))
    assert not hidden(Channel("cpu.user"))


def test_seconds_with_reduced_sampling_are_counted() -> None:
    tables = [ChannelTable((), (Channel(name, "", Kind.GAUGE, 1.0, Lane.SLOW),))
              for name in ("own.fallbacks", "cpu.load1")]  # fmt: skip
    levels = [(tables[0], 0, False), (tables[0], 2, False), (tables[0], 1, True),
              (tables[1], 3, False)]  # fmt: skip
    slices = [
        Slice(float(index), replace(message("n", index, table), slow=np.array([level]),
                                 slow_missing=np.array([missing])), table)
        for index, (table, level, missing) in enumerate(levels)
    ]  # fmt: skip
    assert reduced_seconds(slices) == 1
    judged = Judged("train-1", "train", 0.1, recorded_seconds=4, reduced_seconds=1)
    assert list(summary.reduced_lines([judged, replace(judged, reduced_seconds=0)])) == [
        "  reduced: train-1: for 1 of 4 s the collector read less than it could;"
        " train-1.log says what"
    ]


def test_totals_count_strong_and_weak_apart() -> None:
    weak = Case(
        "cpu_weak", "CPU contention", True, CASE.subsystems, None, 0, 88, 100, 114, 128, lost=0.04
    )
    costly = replace(CASE, lost=0.256)
    judged = Judged(
        "train-1", "train", 0.1,
        (
            outcome(SESSION, CASE, [_update(105, subjects=("/x",))]),
            outcome(SESSION, costly, []),
            outcome(SESSION, weak, [_update(103)]),
        ),
        healthy_seconds=3600,
    )  # fmt: skip
    sums = summary.totals([judged])
    assert (sums["strong"]["found"]["hits"], sums["strong"]["found"]["of"]) == (1, 2)
    assert (sums["strong"]["subject_right"]["hits"], sums["strong"]["subject_right"]["of"]) == (
        0,
        1,
    )
    assert sums["weak"]["found"]["of"] == 1
    assert sums["healthy"]["minutes"] == 60
    printed = "\n".join((*summary.table([judged]), *summary.lines(sums)))
    assert "found 1 of 2 (50%" in printed
    assert "of those that cost 10% of the job's pace 0 of 1 (0%" in printed
    assert printed.count("of those that cost") == 1
    assert [line.split()[3] for line in printed.splitlines() if "26  no" in line] == ["26"]


def _counts(share: dict[str, Any]) -> tuple[int, int]:
    return share["hits"], share["of"]


def test_results_are_valid_json(tmp_path: Path) -> None:
    judged = Judged("train-1", "train", 0.1, (outcome(SESSION, CASE, []),))
    summary.write(tmp_path / "sub" / "faults.json", [judged], [])
    text = (tmp_path / "sub" / "faults.json").read_text()
    assert "NaN" not in text
    assert '"median_found_s": null' in text


@pytest.mark.parametrize(
    ("hits", "of", "low", "high"),
    [(0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (8, 10, 0.4902, 0.9433), (1, 2, 0.0945, 0.9055)],
)
def test_wilson_intervals(hits: int, of: int, low: float, high: float) -> None:
    assert Share(hits, of).interval == pytest.approx((low, high), abs=1e-4)


@given(st.integers(1, 200).flatmap(lambda of: st.tuples(st.integers(0, of), st.just(of))))
def test_a_share_lies_in_its_interval(pair: tuple[int, int]) -> None:
    share = Share(*pair)
    low, high = share.interval
    assert 0 <= low <= share.value + 1e-12
    assert share.value - 1e-12 <= high <= 1


def test_poisson_rates() -> None:
    assert rate_interval(0, 1.0) == pytest.approx((0.0, 3.6889), abs=1e-4)
    assert rate_interval(2, 2.0) == pytest.approx((0.1211, 3.6123), abs=1e-4)
    assert rate_interval(1, 0.0)[1] == float("inf")


def test_the_median_of_nothing() -> None:
    assert middle([]) is None
    assert middle([3, 1, 2]) == 2


def test_the_schedule_of_healthy_jobs() -> None:
    assert due(0) == {"train"}
    assert due(100) == {"train", "server"}
    assert due(200) == {"train", "server", "loader"}
    assert due(299) == {"server"}
    assert due(300) == {"train"}


def test_an_index_can_be_written_and_read(tmp_path: Path) -> None:
    row = CaseRow("a", "b", False, ["CPU"], None, 0.5, 10**9, 2 * 10**9, 3 * 10**9, 4 * 10**9)
    index = Index("train", "train-1.rvl", 0, {"cpus": 2}, 5, 6, 0.25, [row], {"x": "needs y"})
    index.save(tmp_path)
    assert read_index(tmp_path / "train-1.session.json") == index
    (session,) = sessions(tmp_path)
    assert (session.cases[0].onset, session.cases[0].offset) == (2, 3)
    assert session.of(set()).cases == ()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": 9}'])
def test_a_damaged_index_gives_a_single_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.session.json").write_text(text)
    with pytest.raises(IndexFileError, match="is no index of a recording"):
        sessions(tmp_path)


def test_an_empty_directory_holds_nothing_to_judge(tmp_path: Path) -> None:
    with pytest.raises(NothingToJudgeError, match="nothing to judge"):
        sessions(tmp_path)


def test_another_detector_needs_a_play_function(tmp_path: Path) -> None:
    with pytest.raises(BesideError, match="no Python file"):
        load(tmp_path / "gone.py")
    (tmp_path / "empty.py").write_text("")
    with pytest.raises(BesideError, match="no function play"):
        load(tmp_path / "empty.py")
