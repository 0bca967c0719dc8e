from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from reveal_contract.channels import Channel
from reveal_contract.finding import rfc3339
from reveal_contract.metric import Kind, Lane, Subsystem
from scenariobench.clip import Frame, table_of
from scenariobench.findings_file import HeardRow
from scenariobench.judge import Verdict, judge
from scenariobench.player import Played
from scenariobench.timeline import Timeline, Truth
from scenariobench.truth import TrueValues, wrong_values
from support.synthetic_clips import faulty, healthy

START_NS = 1_700_000_000 * 10**9
TRUTH = Truth(
    "storm#0", frozenset({Subsystem.CPU}), frozenset({"ContextSwitchStorm"}),
    frozenset({"fault"}), 120.0, 160.0,
)  # fmt: skip


def _time(second: float) -> str:
    return rfc3339(START_NS + round(second * 1e9))


def _row(second: int, *, state: str = "Open", name: str = "cpu-1", **changes: Any) -> HeardRow:
    row = {
        "id": name, "kind": "Anomaly", "nodeName": "n", "subsystem": "CPU", "state": state,
        "firstSeenTime": _time(120), "lastSeenTime": _time(second), "claim": "many switches",
        "hypothesis": {"name": "ContextSwitchStorm"}, "evidence": [],
        "pods": [{"name": "fault"}], "subjects": [],
    }  # fmt: skip
    if state == "Resolved":
        row["resolvedTime"] = _time(second - 10)
    return HeardRow(second - 1, second, {**row, **changes})


def _verdict(*rows: HeardRow, truth: Truth = TRUTH, seconds: int = 240) -> Verdict:
    timeline = Timeline("row", "name", 1, seconds, (healthy(),), (), (truth,))
    return judge(timeline, Played("now", START_NS, list(rows)), {truth.name: TrueValues()})


RIGHT = (_row(124), _row(171, state="Resolved"))


def test_what_is_right_in_all_columns() -> None:
    verdict = _verdict(*RIGHT)
    (judged,) = verdict.truths
    assert judged.right
    assert not verdict.false
    assert judged.answers["stated"] is None, "only where the evidence ends before the fault"
    assert not judged.notes


@pytest.mark.parametrize(
    ("column", "rows"),
    [
        ("found", ()),
        (
            "subsystem",
            (_row(124, subsystem="Memory"), _row(171, state="Resolved", subsystem="GPU")),
        ),
        ("cause", (*RIGHT[:1], _row(171, state="Resolved", hypothesis=None))),
        ("culprit_opening", (_row(124, pods=[{"name": "other"}]), RIGHT[1])),
        ("culprit_end", (RIGHT[0], _row(171, state="Resolved", pods=[]))),
        ("opened", (_row(130), RIGHT[1])),
        ("resolved", RIGHT[:1]),
        ("resolved", (RIGHT[0], _row(140, state="Resolved"))),
        ("resolved", (RIGHT[0], _row(195, state="Resolved"))),
        (
            "one_report",
            (*RIGHT, _row(150, name="cpu-2"), _row(172, name="cpu-2", state="Resolved")),
        ),
        ("one_series", (*RIGHT, _row(173), _row(180, state="Resolved"))),
    ],
)
def test_what_is_wrong_in_a_column(column: str, rows: tuple[HeardRow, ...]) -> None:
    (judged,) = _verdict(*rows).truths
    assert judged.answers[column] is False
    assert judged.notes


def test_a_finding_that_ends_before_it_begins_is_wrong() -> None:
    late = _row(171, state="Resolved", resolvedTime=_time(100))
    (judged,) = _verdict(RIGHT[0], late).truths
    assert judged.answers["resolved"] is False


def test_a_fault_that_lasts_to_the_end_must_stay_open() -> None:
    truth = Truth(**{**vars(TRUTH), "end": 240.0})
    assert _verdict(RIGHT[0], truth=truth).truths[0].right
    assert not _verdict(*RIGHT, truth=truth).truths[0].right


def test_what_opens_without_a_fault_is_false() -> None:
    stray = _row(60, name="memory-9", subsystem="Memory", hypothesis=None)
    verdict = _verdict(*RIGHT, stray)
    assert len(verdict.false) == 1
    assert verdict.false[0].startswith("memory-9 at 61 s")
    assert verdict.truths[0].right


def test_evidence_that_ends_has_to_be_stated() -> None:
    truth = Truth(**{**vars(TRUTH), "unobserved": True, "resolve_within": 100.0})
    silent, stated = (
        _verdict(RIGHT[0], _row(230, state="Resolved", **changes), truth=truth, seconds=300)
        for changes in ({}, {"resolution": "Unobserved"})
    )
    assert silent.truths[0].answers["stated"] is False
    assert stated.truths[0].right


def _line(
    value: str, metric: str = "cpu.context_switches", feature: str = "mean"
) -> dict[str, str]:
    return {"metric": metric, "instance": "", "feature": feature, "value": value}


@pytest.fixture
def values() -> TrueValues:
    result, clip = TrueValues(), faulty()
    for second in range(6, 15):
        result.add(clip.frame(second))
    return result


def test_values_are_plain_means(values: TrueValues) -> None:
    switches = values.value("cpu.context_switches", "", "mean")
    assert switches is not None
    assert switches.mean == 600
    usage = values.value("cpu.subject.usage", "", "sum_values")
    assert usage is not None
    assert usage.mean == 1e7
    assert values.value("cpu.subject.usage", "/fault", "mean") == usage
    cached = values.value("memory.cached", "", "mean")
    assert cached is not None
    assert cached.mean == 900 * 1024


def test_a_fold_over_cpus_leaves_the_total_of_the_host_out() -> None:
    waits = [Channel("cpu.iowait", name, Kind.COUNTER, 1.0, Lane.FAST) for name in ("", "0", "1")]
    fast = np.tile(np.array([9, 2, 7], np.int64), (10, 1))
    slow = np.zeros(0, np.int64)
    frame = Frame(
        table_of(tuple(waits), ()), fast, slow, fast < 0, slow < 0
    )  # fmt: skip
    values = TrueValues()
    values.add(frame)
    for feature, expected in (("maximum", 70), ("mean", 90)):
        waited = values.value("cpu.iowait", "", feature)
        assert waited is not None
        assert waited.mean == expected


def test_a_value_may_be_a_fifth_off(values: TrueValues) -> None:
    assert wrong_values([_line("715"), _line("485")], values) == (2, [])
    compared, wrong = wrong_values([_line("725"), _line("7", "cpu.busy")], values)
    assert compared == 1, "a ratio of the analyzer is not in the slices"
    assert wrong == ["cpu.context_switches{} is 725, true 600"]


def test_missing_samples_do_not_lower_a_rate() -> None:
    clip, values = faulty(), TrueValues()
    clip.fast_missing[:, :5, 0] = True
    values.add(clip.frame(8))
    switches = values.value("cpu.context_switches", "", "mean")
    assert switches is not None
    assert switches.mean == 600
    clip.fast_missing[:, :, 0] = True
    nothing = TrueValues()
    nothing.add(clip.frame(8))
    assert nothing.value("cpu.context_switches", "", "mean") is None


def test_scattered_values_may_differ_by_their_error() -> None:
    clip, values = faulty(), TrueValues()
    clip.fast[:, :, 0] = 0
    clip.fast[8, 0, 0] = 9
    for second in range(6, 15):
        values.add(clip.frame(second))
    switches = values.value("cpu.context_switches", "", "mean")
    assert switches is not None
    assert switches.mean == 1
    assert switches.agrees(1 + 1.9 * np.sqrt(8) / 3)
    assert not switches.agrees(1 + 2.1 * np.sqrt(8) / 3)
