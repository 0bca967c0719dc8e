"""Invalid hypothesis files: each is parsed, or refused with a readable error."""

from __future__ import annotations

import copy
from importlib import resources
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from reveal_analyzer.hypotheses.loader import HypothesisError, load, parse
from support.property_tests import examples

_HERE = resources.files("reveal_analyzer.hypotheses")
TEXTS = {item.name: item.read_text() for item in _HERE.iterdir() if item.name.endswith(".yaml")}
NAMES = sorted(TEXTS)
# two entries suffice: reading a file of forty would make a test of minutes
PARTS = {
    name: {"version": 1, "hypotheses": yaml.safe_load(text)["hypotheses"][:2]}
    for name, text in TEXTS.items()
}
ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
    | st.sampled_from(["cpu.busy", "1e8", "{value}", "{", "CPU", "up", "=", "<<", "2001-01-01"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.text(max_size=6) | st.integers(), inner, max_size=3),
    max_leaves=5,
)  # fmt: skip


def read_or_refused(text: str) -> None:
    """Parse a text; allow only an error that is a sentence with a position."""
    try:
        entries = parse(text, "mine.yaml")
    except HypothesisError as error:
        assert str(error).startswith("mine.yaml")
        assert "\n" not in str(error)
        assert len(str(error)) < 600
    else:
        assert len({entry.name for entry in entries}) == len(entries)


def paths(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of all values that can be replaced."""
    inner = data.items() if isinstance(data, dict) else enumerate(data)
    found = []
    for key, value in inner:
        found.append((*path, key))
        if isinstance(value, dict | list):
            found += paths(value, (*path, key))
    return found


def put(data: Any, path: tuple[Any, ...], value: Any) -> None:
    for key in path[:-1]:
        data = data[key]
    data[path[-1]] = value


@examples(60)
@given(st.data())
def test_any_value_in_any_position(data: st.DataObject) -> None:
    mutated = copy.deepcopy(PARTS[data.draw(st.sampled_from(NAMES))])
    for _ in range(data.draw(st.integers(1, 3))):
        put(mutated, data.draw(st.sampled_from(paths(mutated))), data.draw(ODD))
    read_or_refused(yaml.safe_dump(mutated, allow_unicode=True))


@examples(60)
@given(st.data())
def test_any_damage_of_the_text(data: st.DataObject) -> None:
    text = yaml.safe_dump(PARTS[data.draw(st.sampled_from(NAMES))])
    begin = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(begin, min(len(text), begin + 40)))
    read_or_refused(text[:begin] + data.draw(st.text(max_size=6)) + text[end:])


@examples(40)
@given(st.text(max_size=60))
def test_any_text(text: str) -> None:
    read_or_refused(text)
    read_or_refused(f"version: 1\nhypotheses:\n{text}")


@pytest.mark.parametrize(
    "text",
    ["version: 1\nhypotheses: &a [*a]", "version: 1\nhypotheses:\n  - &a {name: X, claim: *a}"],
)
def test_an_alias_to_itself_is_refused(text: str) -> None:
    with pytest.raises(HypothesisError, match=r"^mine\.yaml"):
        parse(text, "mine.yaml")


def test_undamaged_files_are_read() -> None:
    assert sum(len(parse(text, name)) for name, text in TEXTS.items()) == len(load())
