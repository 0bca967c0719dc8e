"""The compiled loops unpack from messages what numpy unpacks."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from reveal_analyzer.kernels import backend
from reveal_contract import wire
from reveal_contract.wire import Message

pytest.importorskip("numba")
GOLDEN = sorted((Path(__file__).parents[3] / "fixtures" / "wire").glob("*.bin"))


@pytest.fixture(scope="module")
def fast() -> backend.Backend:
    return backend.numba_backend()


def assert_same(data: bytes, gauges: wire.Bools | None, fast: backend.Backend) -> None:
    """Compare all fields of two messages, with their types."""
    its, mine = wire.decode(data, gauges), wire.decode(data, gauges, fast.unpack)
    for field in fields(Message):
        expected, found = getattr(its, field.name), getattr(mine, field.name)
        np.testing.assert_array_equal(found, expected, field.name, strict=True)


@pytest.mark.parametrize("missing", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("shape", [(10, 17), (10, 1), (10, 0), (1, 5), (100, 3)])
@pytest.mark.parametrize("bits", [0, 3, 8, 20, 31, 33, 47, 62])
def test_messages(bits: int, shape: tuple[int, int], missing: float, fast: backend.Backend) -> None:
    """These bit widths need every number of byte planes, for first values and for differences."""
    rng = np.random.default_rng(bits)
    ticks = rng.integers(-(1 << bits), 1 << bits, shape)
    slow = rng.integers(-9, 9, 6) << rng.integers(0, 59)
    sent = Message(
        "node", bytes(16), 1, 2, 100_000, bytes(8), ticks, slow,
        rng.random(shape) < missing, rng.random(6) < missing,
    )  # fmt: skip
    gauges = rng.random(shape[1]) < 0.5
    for message in (sent, replace(sent, slow=slow[:0], slow_missing=sent.slow_missing[:0])):
        data = wire.encode(message, gauges)
        assert_same(data, gauges, fast)
        assert_same(data, None, fast)


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_messages_of_every_release(path: Path, fast: backend.Backend) -> None:
    data = path.read_bytes()
    width = wire.decode(data).fast.shape[1]
    assert_same(data, None, fast)
    assert_same(data, np.arange(width) % 2 > 0, fast)
