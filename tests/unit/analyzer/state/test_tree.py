"""Checked access to a restored tree."""

import math

import numpy as np
import pytest

from reveal_analyzer.state import tree
from reveal_analyzer.state.tree import StateError

TREE: tree.StateTree = {
    "age": 90,
    "share": 0.5,
    "open": True,
    "name": "n1",
    "labels": ["a", "b"],
    "half": np.ones((2, 3), np.float16),
    "inner": {"x": {"age": 1}},
    "rows": [{"age": 1}, {"age": 2}],
    "hole": np.array([1.0, math.nan]),
    "large": 10**400,
}


def test_values_that_fit_are_returned() -> None:
    assert tree.integer(TREE, "age", 0, 100) == 90
    assert tree.number(TREE, "share") == 0.5
    assert tree.number(TREE, "age") == 90.0
    assert tree.flag(TREE, "open") is True
    assert tree.text(TREE, "name") == "n1"
    assert tree.texts(TREE, "labels") == ("a", "b")
    assert tree.integer(tree.section(tree.section(TREE, "inner"), "x"), "age") == 1
    assert list(tree.named_sections(TREE, "inner")) == ["x"]
    assert [tree.integer(row, "age") for row in tree.sections(TREE, "rows")] == [1, 2]


def test_an_array_is_copied_and_converted_within_its_kind() -> None:
    values = tree.array(TREE, "half", np.float32, (None, 3))
    values[0, 0] = 7
    assert values.dtype == np.float32
    assert tree.array(TREE, "half", np.float64, (2, 3))[0, 0] == 1
    with pytest.raises(StateError, match="array of int64"):
        tree.array(TREE, "half", np.int64, (2, 3))
    with pytest.raises(StateError, match="array of bool"):
        tree.array(TREE, "half", np.bool_, (2, 3))


@pytest.mark.parametrize("shape", [(3, 2), (2,), (2, 3, 1), (None, None, None)])
def test_an_array_of_another_shape_is_refused(shape: tuple[int | None, ...]) -> None:
    with pytest.raises(StateError, match="shape"):
        tree.array(TREE, "half", np.float32, shape)


def test_an_array_with_a_hole_is_not_finite() -> None:
    assert tree.finite_array(TREE, "half", np.float32, (2, 3)).shape == (2, 3)
    with pytest.raises(StateError, match="finite"):
        tree.finite_array(TREE, "hole", np.float64, (2,))


@pytest.mark.parametrize("key", ["gone", "open", "name", "labels", "half", "inner", "large"])
def test_what_is_no_number_is_refused(key: str) -> None:
    with pytest.raises(StateError, match=key):
        tree.integer(TREE, key)
    with pytest.raises(StateError, match=key):
        tree.number(TREE, key)


@pytest.mark.parametrize("key", ["gone", "age", "share", "half", "large"])
def test_what_is_no_text_list_flag_or_section_is_refused(key: str) -> None:
    for read in (
        tree.text, tree.texts, tree.flag, tree.section, tree.sections, tree.named_sections
    ):  # fmt: skip
        with pytest.raises(StateError, match=key):
            read(TREE, key)


def test_an_integer_outside_its_range_is_refused() -> None:
    with pytest.raises(StateError, match="from 0 to 89"):
        tree.integer(TREE, "age", 0, 89)
    with pytest.raises(StateError, match="from 91"):
        tree.integer(TREE, "age", 91)
