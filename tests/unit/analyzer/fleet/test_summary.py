"""The encoding of a summary: values survive, and invalid bytes never crash."""

from __future__ import annotations

import json
import zlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_analyzer.fleet.summary import VERSION, Summary, SummaryError, decode, encode
from reveal_analyzer.fleet.workload import JobMember, JobPart
from support.fleet_summaries import GIB, fleet, part, summary
from support.property_tests import examples

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
NUMBER = st.floats(allow_nan=True, allow_infinity=False, width=32)
MEMBERS = st.builds(JobMember, TEXT, TEXT, TEXT, TEXT)
JOBS = st.builds(
    JobPart,
    st.lists(MEMBERS, max_size=3).map(tuple),
    st.integers(1, 99),
    st.dictionaries(TEXT, st.floats(0, 1e15), max_size=4),
)


ODD: list[Any] = [None, 1, -1.5, "x", [], [None], ["x"], [1e999], {}, {"a": 1}, [{}], True]


def parts_of(encoded: Summary) -> tuple[dict[str, Any], bytes]:
    """Return the row and the vectors of an encoded summary."""
    body = zlib.decompress(encode(encoded)[1:])
    ends = 4 + int.from_bytes(body[:4], "little")
    return json.loads(body[4:ends]), body[ends:]


def row(encoded: Summary) -> dict[str, Any]:
    return parts_of(encoded)[0]


def packed(row: object, vectors: bytes) -> bytes:
    head = json.dumps(row).encode()
    return bytes([VERSION]) + zlib.compress(len(head).to_bytes(4, "little") + head + vectors)


FIELDS = sorted(row(summary("n")))


SUMMARIES = st.builds(
    Summary,
    node=TEXT,
    minute=st.integers(0, 2**40),
    seconds=st.integers(0, 60),
    kind=TEXT,
    names=st.just(()),
    levels=st.just(np.zeros(0)),
    spreads=st.just(np.zeros(0)),
    activity=st.dictionaries(TEXT, st.floats(-1e15, 1e15), max_size=4),
    workload=st.lists(TEXT, max_size=4).map(tuple),
    jobs=st.dictionaries(TEXT, JOBS, max_size=3),
    facts=st.dictionaries(TEXT, TEXT, max_size=4),
)


@given(SUMMARIES, st.lists(NUMBER, max_size=20))
@examples(60)
def test_a_summary_comes_back_as_it_was(original: Summary, levels: list[float]) -> None:
    names = tuple(f"m{index}" for index in range(len(levels)))
    original = replace(
        original, names=names, levels=np.array(levels), spreads=np.array(levels[::-1])
    )
    back = decode(encode(original))
    assert back is not None
    for field in ("levels", "spreads"):
        np.testing.assert_allclose(getattr(back, field), getattr(original, field), rtol=1e-5)
    assert back.activity == pytest.approx(original.activity, rel=1e-5)
    assert back.jobs.keys() == original.jobs.keys()
    for name, job in original.jobs.items():
        assert back.jobs[name].levels == pytest.approx(job.levels, rel=1e-5)
        assert (back.jobs[name].members, back.jobs[name].count) == (job.members, job.count)
    same = ("node", "minute", "seconds", "kind", "names", "workload", "facts")
    assert [getattr(back, field) for field in same] == [getattr(original, field) for field in same]


def test_whole_numbers_come_back_exactly() -> None:
    original = summary(
        "n", {"memory.hugepages.free": 4.0 * GIB + 2**21, "memory.mem_total": 1.0 * GIB}
    )
    back = decode(encode(original))
    assert back is not None
    assert back.level("memory.hugepages.free") == 4 * GIB + 2**21
    assert back.level("memory.mem_total") == GIB


def test_another_version_is_passed_over() -> None:
    assert decode(bytes([VERSION - 1]) + encode(summary("n"))[1:]) is None


@given(st.binary(max_size=40))
@examples(60)
def test_any_bytes_are_refused_with_a_sentence(data: bytes) -> None:
    with pytest.raises(SummaryError, match=r"."):
        decode(bytes([VERSION]) + data)


@given(st.sampled_from(FIELDS), st.sampled_from(ODD))
@examples(150)
def test_a_damaged_field_is_refused_or_read_and_never_a_crash(field: str, value: object) -> None:
    fields, vectors = parts_of(summary("n", jobs={"job": part()}))
    try:
        back = decode(packed({**fields, field: value}, vectors))
    except SummaryError:
        return
    assert back is not None
    assert back.levels.size == back.spreads.size == len(back.names)


@pytest.mark.parametrize("length", [0, 1, 2, 40, -1])
def test_truncated_bytes_are_refused(length: int) -> None:
    with pytest.raises(SummaryError):
        decode(encode(summary("n"))[:length])


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (b"", "0 bytes of levels"),
        (b"\0" * 33, "33 bytes of levels"),
        (np.array([1.0, np.inf, 0.0, 0.0]).tobytes(), "infinite"),
    ],
)
def test_levels_that_are_none_are_refused(vectors: bytes, message: str) -> None:
    fields = {**row(summary("n")), "names": "cpu.busy cpu.idle"}
    with pytest.raises(SummaryError, match=message):
        decode(packed(fields, vectors))


def test_what_unpacks_without_end_is_refused() -> None:
    with pytest.raises(SummaryError, match="longer than"):
        decode(bytes([VERSION]) + zlib.compress(b" " * (1 << 26)))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_what_is_missing_or_no_number_is_missing(value: float) -> None:
    original = summary("n", {"cpu.busy": value})
    back = decode(encode(replace(original, spreads=np.full(len(original.names), value))))
    assert back is not None
    assert np.isnan(back.level("cpu.busy"))
    assert np.isnan(back.level("not.there"))
    assert back.level("cpu.online") == 2.0
    assert np.isnan(back.spreads).all()


def test_activity_that_was_not_read_comes_back_as_missing() -> None:
    original = replace(summary("n"), activity={"cpu.busy": float("nan"), "cpu.idle": 1e9})
    back = decode(encode(original))
    assert back is not None
    assert back.activity == pytest.approx(original.activity, nan_ok=True)


def test_levels_beyond_single_precision_are_kept() -> None:
    back = decode(encode(summary("n", {"cpu.pressure.some": 1.5e300})))
    assert back is not None
    assert back.level("cpu.pressure.some") == 1.5e300


def test_the_bytes_of_a_node_are_deterministic() -> None:
    assert [encode(each) for each in fleet(3)] == [encode(each) for each in fleet(3)]
