"""Labels of columns come back as they were."""

import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from reveal_analyzer.state import labels
from reveal_analyzer.state.labels import pack_labels, unpack_labels
from reveal_analyzer.state.tree import StateError
from support.property_tests import examples


@given(st.lists(st.text(st.characters(exclude_characters="\0"), min_size=1, max_size=20)))
@examples(100)
def test_labels_come_back(given_labels: list[str]) -> None:
    packed = pack_labels(tuple(given_labels))
    assert unpack_labels({"labels": packed}, "labels") == tuple(given_labels)


def test_equal_labels_are_packed_once() -> None:
    names = [f"cpu.user{{{number}}}" for number in range(300)]
    assert pack_labels(tuple(names)) is pack_labels((*names,))
    assert len(pack_labels(tuple(names))) < 1024


@pytest.mark.parametrize(
    "packed",
    [
        np.zeros(0, np.uint8),
        np.frombuffer(b"garbage", np.uint8),
        pack_labels(("a", "b"))[:-1],
        np.frombuffer(zstandard.compress(b"\xff\xfe"), np.uint8),
        np.frombuffer(zstandard.compress(bytes(labels.MAX_LABELS + 1)), np.uint8),
        np.frombuffer(zstandard.compress(bytes(8 << 20)), np.uint8),
        np.zeros((2, 2), np.uint8),
        "text",
    ],
    ids=range(8),
)
def test_what_are_no_labels_is_refused(packed: object) -> None:
    with pytest.raises(StateError):
        unpack_labels({"labels": packed}, "labels")  # type: ignore[dict-item]
