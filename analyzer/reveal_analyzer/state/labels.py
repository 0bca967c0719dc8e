"""Labels of columns in a saved state: the largest part of it, and the same in each save."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import zstandard

from reveal_analyzer.arrays import Bytes
from reveal_analyzer.state.tree import StateError, StateTree, array
from reveal_contract.zstd_frames import decompressed

MAX_LABELS = 1 << 16
_MAX_TEXT = 4 << 20  # bytes
_REMEMBERED = 8192  # sets of labels: nodes of one analyzer, most with pods of their own
_SHARED = 64  # sets that nodes of one kind have in common


@lru_cache(maxsize=_REMEMBERED)
def pack_labels(labels: tuple[str, ...]) -> Bytes:
    """Return the labels as compressed bytes; none contains a zero byte."""
    text = "\0".join(labels).encode(errors="surrogatepass")
    packed = np.frombuffer(zstandard.ZstdCompressor(level=6).compress(text), np.uint8)
    packed.flags.writeable = False
    return packed


def unpack_labels(tree: StateTree, key: str) -> tuple[str, ...]:
    """Return the labels at ``key``; raises ``StateError``."""
    packed = array(tree, key, np.uint8, (None,)).tobytes()
    try:
        return _unpacked(packed)
    except ValueError as error:
        raise StateError(f"{key!r} are no labels: {error}") from None


@lru_cache(maxsize=_SHARED)
def _unpacked(packed: bytes) -> tuple[str, ...]:
    """Return the labels in these bytes, as one object for all nodes that have the same."""
    text = decompressed(packed, _MAX_TEXT)
    if text.count(b"\0") >= MAX_LABELS:
        raise ValueError(f"at most {MAX_LABELS} are read")
    return tuple(text.decode(errors="surrogatepass").split("\0")) if text else ()
