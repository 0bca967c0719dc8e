"""A frame of others is read up to a limit, whatever it claims to hold."""

from __future__ import annotations

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from reveal_contract.zstd_frames import FrameError, decompressed
from support.property_tests import examples

MOST = 1000
# magic, a header without a checksum that states 2^40 bytes, an empty last block (RFC 8878)
HUGE = b"\x28\xb5\x2f\xfd\xe0" + (1 << 40).to_bytes(8, "little") + b"\x01\x00\x00"


@given(st.binary(max_size=MOST))
@examples(50)
def test_a_frame_gives_its_content(content: bytes) -> None:
    assert decompressed(zstandard.ZstdCompressor().compress(content), MOST) == content


@given(st.binary(max_size=60) | st.binary(max_size=20).map(lambda tail: HUGE[:5] + tail))
@examples(300)
def test_any_bytes_are_a_small_frame_or_refused(frame: bytes) -> None:
    try:
        assert len(decompressed(frame, MOST)) <= MOST
    except FrameError as error:
        assert str(error)


def test_a_frame_that_claims_much_takes_no_memory() -> None:
    with pytest.raises(FrameError, match="it claims 1099511627776 bytes, at most 1000 are read"):
        decompressed(HUGE, MOST)
