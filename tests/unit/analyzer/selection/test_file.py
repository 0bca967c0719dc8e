"""The selection file: written, read back, refused with what is wrong in it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_analyzer.selection.file import (
    DroppedMetric,
    KeptMetric,
    Selection,
    SelectionError,
    WorkloadSummary,
    load,
    parse,
)
from support.property_tests import examples

NAMES = st.lists(
    st.text("abcdeß.{}/:- 0123456789'\"#&*é%", min_size=1, max_size=20),
    min_size=1, max_size=12, unique=True,
)  # fmt: skip
GOOD = Selection(
    0.5,
    (KeptMetric("cpu.user", "represents 1 other"),),
    (DroppedMetric("cpu.user{0}", "cpu.user", -0.93),),
    (WorkloadSummary("train", 3, 1140),),
)


@given(names=NAMES, kept=st.integers(1, 12), r=st.floats(-1, 1), threshold=st.floats(0, 1))
@examples(60)
def test_what_is_written_is_read_back(
    names: list[str], kept: int, r: float, threshold: float
) -> None:
    stay, go = names[:kept], names[kept:]
    written = Selection(
        threshold,
        tuple(KeptMetric(name, f"because {name}") for name in stay),
        tuple(DroppedMetric(name, stay[-1], r) for name in go),
        (WorkloadSummary(names[0], 2, 10),),
    )
    assert parse(written.to_yaml()) == written


def test_a_metric_stands_on_a_line() -> None:
    lines = GOOD.to_yaml().splitlines()
    assert lines[0] == "version: 1"
    assert "- {metric: cpu.user, reason: represents 1 other}" in lines
    assert "- {metric: 'cpu.user{0}', by: cpu.user, r: -0.93}" in lines


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must be a mapping with version: 1"),
        ("- 1", "must be a mapping"),
        ("version: 2", "must be a mapping with version: 1"),
        ("version: 1\nthreshold: 0.5\nkeep: []", "unknown key keep; allowed are version"),
        ("version: 1", "threshold: must be a number from 0 to 1"),
        ("version: 1\nthreshold: 1.5", "threshold: must be a number from 0 to 1"),
        ("version: 1\nthreshold: true", "threshold: must be a number"),
        ("version: 1\nthreshold: .nan", "threshold: must be a number"),
        ("version: 1\nthreshold: 1\nkept: 3", "kept: must be a list"),
        ("version: 1\nthreshold: 1\nkept: [a]", "kept: entry 1: must have metric and reason"),
        (
            "version: 1\nthreshold: 1\nkept: [{metric: a, reason: b, c: d}]",
            "kept: entry 1: must have metric and reason, and nothing else",
        ),
        (
            "version: 1\nthreshold: 1\ndropped: [{metric: a, by: b, r: 0.5}]",
            "dropped: a: by: b is not kept",
        ),
        (
            "version: 1\nthreshold: 1\nkept: [{metric: b, reason: x}]\n"
            "dropped: [{metric: a, by: b, r: 2}]",
            "dropped: entry 1: r: must be a number from -1 to 1",
        ),
        (
            "version: 1\nthreshold: 1\nkept: [{metric: b, reason: x}, {metric: b, reason: y}]",
            "b is listed twice",
        ),
        ("version: 1\nthreshold: 1\nworkloads: [{name: a}]", "workloads: entry 1: must have name"),
        ("a: [", "is not YAML: while parsing"),
        ("[" * 3000, "is not YAML"),
    ],
)
def test_what_is_no_selection_is_refused_with_the_reason(text: str, message: str) -> None:
    with pytest.raises(SelectionError, match="^" + message.replace("{", r"\{")):
        parse(text)


@given(text=st.text("versionkptdbyhl: 1.\n-{}[],&*", max_size=80))
@examples(100)
def test_any_text_is_read_or_refused(text: str) -> None:
    for head in ("", "version: 1\nthreshold: 0.5\n"):
        try:
            assert parse(head + text).threshold <= 1
        except SelectionError as error:
            assert str(error)


def test_the_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "selection.yaml"
    path.write_text(GOOD.to_yaml())
    assert load(path) == GOOD
    with pytest.raises(SelectionError, match=r"no\.yaml: No such file"):
        load(tmp_path / "no.yaml")
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(SelectionError, match="is not text"):
        load(path)
    path.write_text("version: 3")
    with pytest.raises(SelectionError, match=r"selection\.yaml: must be a mapping"):
        load(path)
