"""A zstd frame (RFC 8878) that somebody else wrote, of a limited size."""

from __future__ import annotations

import zstandard


class FrameError(ValueError):
    """The bytes are no frame, or too large a frame; the text says why."""


def decompressed(frame: bytes, most_bytes: int) -> bytes:
    """Return the content of a frame that states its size; raises ``FrameError``.

    The limit of the library does not hold for such a frame: it allocates what the frame claims.
    """
    try:
        size = zstandard.frame_content_size(frame)
        if not 0 <= size <= most_bytes:
            raise FrameError(f"it claims {size} bytes, at most {most_bytes} are read")
        return zstandard.ZstdDecompressor().decompress(frame, max_output_size=most_bytes)
    except zstandard.ZstdError as error:
        raise FrameError(f"it cannot be decompressed: {error}") from None
