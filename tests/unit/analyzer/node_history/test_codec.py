"""Parts of a node's history come back as they were, and damage ends the reading."""

from __future__ import annotations

import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from reveal_analyzer.node_history import codec
from reveal_analyzer.node_history.codec import Part, encode, parts
from reveal_contract.channels import Channel
from reveal_contract.metric import Kind, Lane

_NUMBERS = st.integers(-(2**62), 2**62)
_NAMES = st.text(max_size=8).filter(str.isprintable)


@st.composite
def any_part(draw: st.DrawFn) -> Part:
    """Return a part whose channels are all new."""
    instances = draw(st.lists(_NAMES, unique=True, max_size=5))
    added = tuple(
        Channel("cpu.user", instance, draw(st.sampled_from(Kind)), draw(st.floats(1e-6, 1e12)),
                draw(st.sampled_from(Lane)))
        for instance in instances
    )  # fmt: skip
    seconds = draw(st.integers(1, 6))
    shape = seconds, len(added)
    missing = draw(arrays.arrays(np.bool_, shape))
    steps = draw(arrays.arrays(np.int64, shape, elements=_NUMBERS))
    times = arrays.arrays(np.int64, (seconds,), elements=_NUMBERS)
    return Part(
        draw(st.text(max_size=8)), draw(st.binary(min_size=16, max_size=16)), "w", 0, added,
        draw(times), draw(times), np.where(missing, 0, steps), missing,
    )  # fmt: skip


def same(mine: Part, other: Part) -> bool:
    named = (mine.node, mine.boot, mine.writer, mine.known, mine.added)
    return named == (other.node, other.boot, other.writer, other.known, other.added) and all(
        np.array_equal(own, its)
        for own, its in (
            (mine.sequences, other.sequences),
            (mine.starts_ns, other.starts_ns),
            (mine.missing, other.missing),
            (np.where(mine.missing, 0, mine.steps), np.where(other.missing, 0, other.steps)),
        )
    )


@given(st.lists(any_part(), max_size=3))
def test_parts_come_back_in_their_order(several: list[Part]) -> None:
    found = list(parts(b"".join(map(encode, several))))
    assert len(found) == len(several)
    assert all(map(same, found, several))


@given(any_part(), st.data())
def test_a_damaged_part_ends_the_reading(part: Part, data: st.DataObject) -> None:
    first, second = encode(part), bytearray(encode(part))
    position = data.draw(st.integers(0, len(second) - 1))
    second[position] ^= 1 << data.draw(st.integers(0, 7))
    assert len(list(parts(first + bytes(second)))) == 1
    assert len(list(parts(first + bytes(second[:position])))) == 1


@pytest.mark.parametrize(
    "body",
    [b"", b"\xff\xff\xff\xff", b"\x02\x00\x00\x00{}", b"\x02\x00\x00\x00[]",
     b'\x52\x00\x00\x00{"seconds":9,"planes":9,"known":0,"added":[],"missing":false,"node":"n","boot":""}'],
)  # fmt: skip
def test_a_frame_that_is_no_part_is_left_out(body: bytes) -> None:
    frame = zstandard.ZstdCompressor().compress(body)
    head = codec._FRAME.pack(codec._MAGIC, len(frame), codec.zlib.crc32(frame))
    assert list(parts(head + frame)) == []
