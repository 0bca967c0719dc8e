"""Packed samples: the same recording in fewer bytes."""

from __future__ import annotations

import pytest
import zstandard

from reveal_analyzer.evidence.packing import packed, unpacked
from reveal_analyzer.evidence.samples import KeptSlice, Samples
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Kind
from reveal_contract.recording import RecordingError
from support.evidence_samples import slices
from support.synthetic_node import TABLE

OTHER = ChannelTable((*TABLE.fast, Channel("cpu.nice", "", Kind.COUNTER)), TABLE.slow)
NOTES = ({"finding": {"id": "x"}}, {"node": "n1", "subjects": []})


def recording() -> bytes:
    """Return samples of two tables in turn, some of them with a single tick."""
    mixed = [*slices(60)[:20], *slices(60, OTHER)[20:40], *slices(60)[40:]]
    kept = [KeptSlice.of(*each) for each in mixed]
    return Samples((*kept[:50], *(each.single_sample() for each in kept[50:]))).to_recording(NOTES)


def test_a_packed_recording_comes_back_byte_for_byte() -> None:
    original = recording()
    assert unpacked(packed(original)) == original


def test_it_takes_less_than_the_compressed_recording() -> None:
    original = recording()
    compressed = zstandard.ZstdCompressor(level=9).compress(original)
    assert len(packed(original)) < len(compressed) * 0.85


def test_a_recording_without_slices_is_packed_too() -> None:
    original = Samples().to_recording(NOTES)
    assert unpacked(packed(original)) == original


@pytest.mark.parametrize(
    "data",
    [b"", b"no frame", *(zstandard.ZstdCompressor().compress(body) for body in
     (b"", b"\x02\x00\x00\x00{}", b"\xff\xff\xff\xff", b"\x01\x00\x00\x00["))],
)  # fmt: skip
def test_what_is_not_packed_is_refused(data: bytes) -> None:
    with pytest.raises(RecordingError):
        unpacked(data)


def test_packed_samples_that_end_early_are_refused() -> None:
    whole = zstandard.ZstdDecompressor().decompress(packed(recording()))
    for length in range(0, len(whole), 997):
        with pytest.raises(RecordingError):
            unpacked(zstandard.ZstdCompressor().compress(whole[:length]))
