"""The objects of a list, as ``json.loads`` has them, wherever the chunks begin and end."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_collector.subjects.pods import list_stream
from reveal_collector.subjects.pods.list_stream import ListStream

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(), VALUES, max_size=4)


def chunks_of(data: bytes, size: int) -> list[bytes]:
    return [data[begin : begin + size] for begin in range(0, len(data), size)]


def streamed(data: bytes, size: int) -> tuple[list[Any], Any]:
    stream = ListStream(chunks_of(data, size))
    return list(stream), stream.rest


@given(st.lists(OBJECTS, max_size=4), OBJECTS, st.integers(1, 40), st.sampled_from([None, 1]))
def test_objects_and_rest_are_those_of_the_list(
    items: list[Any], metadata: Any, size: int, indent: int | None
) -> None:
    whole = {"kind": "PodList", "metadata": metadata, "items": items, "after": 1}
    for ascii_only in (True, False):
        data = json.dumps(whole, indent=indent, ensure_ascii=ascii_only).encode(errors="replace")
        expected = json.loads(data)
        found, rest = streamed(data, size)
        assert found == expected["items"]
        assert rest == {**expected, "items": []}


@given(st.binary(max_size=60) | st.text('{}[]",:\\ a1', max_size=60).map(str.encode))
def test_what_is_no_json_is_a_value_error_or_the_same_as_json(data: bytes) -> None:
    try:
        found, rest = streamed(data, 7)
    except (ValueError, RecursionError):
        return
    assert found or rest == json.loads(data)


@pytest.mark.parametrize("length", range(1, 60))
def test_a_truncated_list_is_a_value_error(length: int) -> None:
    data = json.dumps({"metadata": {"a": "}"}, "items": [{"b": ["]", {}]}, {"c": 1}], "d": []})
    assert len(data) > 60
    with pytest.raises(ValueError, match=r".+"):
        streamed(data.encode()[:length], 5)


def test_an_object_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_stream, "LARGEST_OBJECT", 1000)
    data = json.dumps({"items": [{"a": "x" * 2000}]}).encode()
    with pytest.raises(ValueError, match="more than 1000 bytes"):
        streamed(data, 100)


def test_memory_is_that_of_an_object() -> None:
    pod = {"spec": {"env": [{"name": str(number), "value": "x" * 50} for number in range(10_000)]}}
    item = json.dumps(pod).encode()

    def chunks() -> Any:
        yield b'{"items":['
        for number in range(30):
            yield (b"," if number else b"") + item
        yield b"]}"

    tracemalloc.start()
    try:
        count = sum(1 for _ in ListStream(chunks()))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 30
    assert peak < 12 * len(item)
