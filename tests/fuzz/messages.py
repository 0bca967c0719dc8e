"""A million damaged messages: each is refused with ``WireError`` or is a message all through.

    python tests/fuzz/messages.py [COUNT]

Half of them get a checksum that is right again, so that what lies behind it is reached.
"""

from __future__ import annotations

import random
import re
import struct
import sys
import time
import zlib
from collections import Counter

import numpy as np

from reveal_contract.envelope import MAX_TICKS, MAX_VALUES, WireError
from reveal_contract.wire import Message, decode, encode

COUNT = 1_000_000
_HEAD = struct.Struct("<3sBI")


def message(rng: np.random.Generator, ticks: int, fast: int, slow: int) -> bytes:
    """A message like those of a node, with gaps."""
    item = Message(
        node="node-1", boot=bytes(range(16)), sequence=7, start_ns=1 << 60, tick_us=100_000,
        table=b"8 bytes.", fast=rng.integers(0, 10**6, (ticks, fast)),
        slow=rng.integers(0, 10**12, slow), fast_missing=rng.random((ticks, fast)) < 0.01,
        slow_missing=rng.random(slow) < 0.01, lateness=np.zeros(ticks, np.int32),
    )  # fmt: skip
    return encode(item, rng.random(fast) < 0.5)


def damaged(dice: random.Random, whole: bytes) -> bytes:
    """Bits, bytes, runs and lengths changed in up to four places."""
    data = bytearray(whole)
    for _ in range(dice.randint(1, 4)):
        index = dice.randrange(len(data)) if len(data) > 1 else 0
        match dice.randrange(6):
            case 0:
                data[index : index + 1] = bytes([data[index] ^ 1 << dice.randrange(8)])
            case 1:
                data[index : index + 1] = dice.randbytes(1)
            case 2:
                del data[index : index + dice.randint(1, 9)]
            case 3:
                data[index:index] = dice.randbytes(dice.randint(1, 9))
            case 4:  # the header: counts and lengths
                data[8 + index % 70 : 12 + index % 70] = dice.choice(
                    [b"\xff" * 4, b"\0" * 4, b"\1" * 4]
                )
            case _:
                del data[index:]
        if not data:
            return b""
    if len(data) > _HEAD.size and dice.random() < 0.5:
        data[: _HEAD.size] = _HEAD.pack(b"RVL", 1, zlib.crc32(bytes(data[_HEAD.size :])))
    return bytes(data)


def outcome(data: bytes) -> str:
    """How a reader takes it; anything but a refusal or a whole message is raised."""
    try:
        read = decode(data)
    except WireError as refused:
        return re.sub(r"\d+", "N", str(refused).split(":")[0])
    ticks, width = read.fast.shape
    assert 1 <= ticks <= MAX_TICKS
    assert ticks * width <= MAX_VALUES
    assert read.fast_missing.shape == read.fast.shape
    assert read.slow_missing.shape == read.slow.shape
    assert read.lateness.shape == (ticks,)
    return "taken"


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else COUNT
    rng, dice = np.random.default_rng(1), random.Random(1)
    shapes = [(1, 1, 0), (10, 30, 20), (10, 0, 5), (100, 3, 1)]
    whole = [message(rng, *shape) for shape in shapes]
    begin = time.monotonic()
    outcomes = Counter(outcome(damaged(dice, dice.choice(whole))) for _ in range(count))
    for what, times in outcomes.most_common():
        sys.stdout.write(f"{times:9,}  {what}\n")
    sys.stdout.write(
        f"{count:,} messages in {time.monotonic() - begin:.0f} s: none crashed a reader\n"
    )


if __name__ == "__main__":
    main()
