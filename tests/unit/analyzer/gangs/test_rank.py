"""Ranks in Redis: they come back as they were, and rows of others are refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_analyzer.gangs.rank import LostPart, Rank, RankError, by_job, decode, encode
from reveal_contract.subjects import MAX_GPUS
from support.ranks import rank, slow

_TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
_NUMBERS = st.floats(0, 1e6).map(lambda value: round(value, 4))
_PARTS = st.builds(LostPart, _TEXT, st.floats(0, 1).map(lambda value: round(value, 4)), _TEXT)
RANKS = st.builds(
    Rank, _TEXT, _TEXT, st.integers(), _TEXT, _TEXT, _TEXT, _TEXT, _NUMBERS, _NUMBERS, _NUMBERS,
    st.lists(_PARTS, max_size=3).map(tuple), st.integers(0, MAX_GPUS),
)  # fmt: skip


@given(st.lists(RANKS, max_size=4))
def test_ranks_come_back(ranks: list[Rank]) -> None:
    assert decode(encode(ranks)) == ranks


ROW = json.loads(encode([slow(0, gpus=8)]))[0]
WITHOUT_GPUS = ROW[:-1]  # a row of the version before


def test_rows_of_an_earlier_version_are_ranks_whose_gpus_are_not_known() -> None:
    mixed = json.dumps([ROW, WITHOUT_GPUS]).encode()
    assert decode(mixed) == [slow(0, gpus=8), slow(0)]


@pytest.mark.parametrize(
    "row",
    [1, [], ROW[:-2], [*ROW, 1], [1, *ROW[1:]], [*ROW[:2], 1.5, *ROW[3:]], [*ROW[:-2], 1],
     [*ROW[:-2], [["x", 2.0, ""]]], [*ROW[:7], True, *ROW[8:]], [*ROW[:-2], 1, 8],
     [*ROW[:7], 10**400, *ROW[8:]],
     *([*WITHOUT_GPUS, gpus] for gpus in (-1, MAX_GPUS + 1, 1.0, True, "8", None))],
)  # fmt: skip
def test_other_rows_are_refused(row: object) -> None:
    with pytest.raises(RankError):
        decode(json.dumps([row]).encode())


@pytest.mark.parametrize("data", [b"", b"{}", b"\xff", b"[" * 10_000, b"[" + b"1," * 300 + b"1]"])
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(RankError):
        decode(data)


def test_a_job_has_several_ranks() -> None:
    alone = rank(7, job="ml/Job/other")
    assert by_job([rank(0), alone, rank(1)]) == {"ml/Job/train": [rank(0), rank(1)]}
    assert (rank(0).subject, rank(0, namespace="", name="/a").subject) == ("ml/train-0", "/a")
