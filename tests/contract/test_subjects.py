"""The announced subject table survives encoding, and invalid tables are refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_contract.subjects import (
    MAX_GPUS,
    Identity,
    SubjectKind,
    SubjectsError,
    from_rows,
    to_rows,
)
from support.property_tests import examples

POD = Identity(
    "ml/train-0", SubjectKind.POD, "u1", "ml", "train-0", "worker", ("worker=c1",),
    "StatefulSet/train", "Burstable", "/kubepods/podu1", "", True, 5, 9, "JobSet/train", gpus=8,
)  # fmt: skip
_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_identities = st.builds(
    Identity, _texts, st.sampled_from(SubjectKind), _texts, _texts, _texts, _texts,
    st.lists(_texts, max_size=3).map(tuple), _texts, _texts, _texts, _texts, st.booleans(),
    st.integers(0, 2**63), st.integers(0, 2**63), _texts, gpus=st.integers(0, MAX_GPUS),
)  # fmt: skip
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["instance", "kind", "uid", "sinceNs", "containers",
                                       "hostNetwork", "gpus"]), inner, max_size=4),
)  # fmt: skip


@examples(200)
@given(st.lists(_identities, max_size=4))
def test_what_is_written_is_read(subjects: list[Identity]) -> None:
    assert from_rows(json.loads(json.dumps(to_rows(subjects)))) == tuple(subjects)


def test_defaults_are_omitted_and_keys_are_camel_case() -> None:
    assert to_rows([Identity("/a", SubjectKind.UNIT)]) == [{"instance": "/a", "kind": "Unit"}]
    row = to_rows([POD])[0]
    assert (row["hostNetwork"], row["untilNs"], row["containers"]) == (True, 9, ["worker=c1"])
    assert row["gpus"] == 8


def test_a_row_of_an_earlier_collector_has_no_gpus_and_their_number_is_bounded() -> None:
    row = {"instance": "a", "kind": "Pod"}
    numbers = [-1, 8, MAX_GPUS + 1]
    read = from_rows([row, *({**row, "gpus": number} for number in numbers)])
    assert [each.gpus for each in read] == [0, 0, 8, MAX_GPUS]


def test_a_newer_collectors_keys_are_passed_over() -> None:
    assert from_rows([{"instance": "a", "kind": "Pod", "later": 1}]) == (
        Identity("a", SubjectKind.POD),
    )


@pytest.mark.parametrize(
    "rows",
    [None, {}, [1], [{}], [{"instance": "a"}], [{"instance": "a", "kind": ""}],
     [{"kind": "Pod"}], [{"instance": 1, "kind": "Pod"}],
     [{"instance": "a", "kind": "Pod", "sinceNs": True}],
     [{"instance": "a", "kind": "Pod", "gpus": "8"}],
     [{"instance": "a", "kind": "Pod", "containers": [1]}], [{}] * 5000],
    ids=lambda rows: repr(rows)[:40],
)  # fmt: skip
def test_what_is_no_table_is_refused(rows: object) -> None:
    with pytest.raises(SubjectsError):
        from_rows(rows)


@examples(200)
@given(_json)
def test_any_json_is_read_or_refused(rows: object) -> None:
    try:
        from_rows(rows)
    except SubjectsError:
        return


def test_a_kind_of_a_later_version_is_a_cgroup() -> None:
    """The other subjects of the node stay known, and this one keeps its name."""
    rows = [{"instance": "a", "kind": "Pod"}, {"instance": "b", "kind": "Planet", "name": "earth"}]
    first, second = from_rows(rows)
    assert (first.kind, second.kind, second.name) == (
        SubjectKind.POD, SubjectKind.CGROUP, "earth",
    )  # fmt: skip
