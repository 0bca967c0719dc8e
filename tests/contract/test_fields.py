"""Readers of mappings report every bad field at once, each with its path."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from reveal_contract.fields import (
    FieldError,
    Fields,
    boolean,
    describe,
    integer,
    items,
    mapping,
    read_fields,
    string,
    strings,
)


@pytest.mark.parametrize(
    ("reader", "good", "bad", "sentence"),
    [
        (string, "a", 1, "p: must be a string, not 1"),
        (partial(string, choices=("a", "b")), "a", "c", "p: must be one of a, b, not 'c'"),
        (boolean, False, 0, "p: must be true or false, not 0"),
        (integer, 3, True, "p: must be an integer, not True"),
        (partial(integer, least=1), 1, 0, "p: must be at least 1, not 0"),
        (partial(integer, most=9), 9, 10, "p: must be at most 9, not 10"),
        (mapping, {"a": 1}, [], "p: must be an object, not []"),
        (partial(items, item=integer), [], "x", "p: must be a list, not 'x'"),
        (partial(items, item=integer, least=1), [1], [], "p: must have at least 1 items"),
        (strings, ["a"], ["a", None], "p[1]: must be a string, not None"),
    ],
)
def test_a_reader_accepts_good_values_and_reports_the_expected_type_of_bad_values(
    reader: Any, good: Any, bad: Any, sentence: str
) -> None:
    value = reader(good, "p")
    assert value == (tuple(good) if isinstance(good, list) else good)
    with pytest.raises(FieldError) as caught:
        reader(bad, "p")
    assert str(caught.value) == sentence


def test_all_problems_of_a_mapping_are_reported_together() -> None:
    given = {"size": "big", "color": "red", "name": "x"}
    values, problems = read_fields(
        given, {"size": integer, "name": string}, ("name", "place"), "box.", "no such field"
    )
    assert values == {"name": "x"}
    assert problems == [
        "box.size: must be an integer, not 'big'",
        "box.color: no such field",
        "box.place: is required",
    ]


def test_a_bad_field_is_noted_and_its_default_used() -> None:
    problems: list[str] = []
    fields = Fields({"a": "x", "n": None, "list": ["x", ""], "o": {"b": 1}}, "spec", problems)
    assert fields.integer("a", 7) == 7
    assert fields.integer("n", 8) == 8
    assert not fields.has("n")
    assert fields.strings("list") == ("x",)
    assert not fields.object("o").boolean("b", False)
    assert not fields.required("missing")
    assert problems == [
        "spec.a: must be an integer, not 'x'",
        "spec.list[1]: must not be empty",
        "spec.o.b: must be true or false, not 1",
        "spec.missing: is required",
    ]


def test_a_long_value_is_truncated_and_an_endless_value_is_named_by_its_type() -> None:
    endless: list[Any] = []
    endless.append(endless)
    assert describe("x" * 99) == f"'{'x' * 56}..."
    assert len(describe(endless)) < 60
    assert describe(10**5000) == "int"
