"""Announced CPU shares survive encoding, and invalid ones are refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_contract.cpu_shares import (
    EQUAL_SHARES,
    CpuGroup,
    CpuMember,
    CpuShares,
    SharesError,
)

GOLDEN = (
    b'{"groups": [{"path": "/kubepods", "weight": 4096.0}, '
    b'{"path": "/kubepods/pod1", "parent": "/kubepods", "limit": 1.5}], '
    b'"members": [{"subject": "ml/train-0", "group": "/kubepods/pod1", "cpus": "0-3,8"}, '
    b'{"subject": "pgrp:make[7]", "weight": 15.0}]}'
)
SHARES = CpuShares(
    (CpuGroup("/kubepods", weight=4096.0), CpuGroup("/kubepods/pod1", "/kubepods", limit=1.5)),
    (
        CpuMember("ml/train-0", "/kubepods/pod1", cpus="0-3,8"),
        CpuMember("pgrp:make[7]", weight=15.0),
    ),
)
_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_amounts = st.floats(0, 1e6)
_shares = st.builds(
    CpuShares,
    st.lists(st.builds(CpuGroup, _texts, _texts, _amounts, _amounts), max_size=4).map(tuple),
    st.lists(st.builds(CpuMember, _texts, _texts, _amounts, _texts), max_size=4).map(tuple),
)


@given(_shares)
def test_what_is_written_is_read(shares: CpuShares) -> None:
    assert CpuShares.from_rows(json.loads(json.dumps(shares.to_rows()))) == shares


def test_the_written_form_stays_as_it_is() -> None:
    assert json.dumps(SHARES.to_rows()).encode() == GOLDEN
    assert CpuShares.from_rows(json.loads(GOLDEN)) == SHARES


def test_keys_of_a_newer_collector_are_ignored() -> None:
    rows = {"groups": [{"path": "/a", "uclamp": 1}], "members": [], "tasks": []}
    assert CpuShares.from_rows(rows) == CpuShares((CpuGroup("/a"),))


def test_without_rows_all_are_equal() -> None:
    assert CpuShares.from_rows({}) == EQUAL_SHARES


@pytest.mark.parametrize(
    "rows",
    [
        [],
        {"groups": {}},
        {"members": [1]},
        {"groups": [{"weight": "1"}]},
        {"groups": [{"limit": -1}]},
        {"groups": [{"weight": True}]},
        {"groups": [{"weight": float("nan")}]},
        {"members": [{"cpus": 3}]},
        {"groups": [{}] * 4097},
    ],
)
def test_unusable_rows_are_refused(rows: object) -> None:
    with pytest.raises(SharesError, match=r"^CPU shares: "):
        CpuShares.from_rows(rows)
