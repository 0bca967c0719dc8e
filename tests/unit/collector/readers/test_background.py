"""A source read by a thread of its own: late by one reading, and never in the way."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

import pytest

from reveal_collector.kernel_interfaces.errors import LayoutChanged, Unsupported
from reveal_collector.readers.background import BackgroundSource
from reveal_collector.readers.source import HUNG_NS
from reveal_collector.readers.textfile import channel
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane
from support.polling import wait_until
from support.source_reader import WAIT


class Slow:
    """Counts its readings; each waits until it is let go."""

    name, lane = "slow", Lane.SLOW

    def __init__(self) -> None:
        self.channels: tuple[Channel, ...] = (channel("network.nic.rx_errs", "a"),)
        self.go = threading.Event()
        self.go.set()
        self.reading = threading.Event()
        self.count = 0
        self.raises: Exception | None = None
        self.closed = threading.Event()

    def open(self) -> None:
        self.closed.clear()

    def read(self) -> Sequence[int | None]:
        self.reading.set()
        assert self.go.wait(WAIT)
        if self.raises is not None:
            error, self.raises = self.raises, None
            raise error
        self.count += 1
        return (self.count,) * len(self.channels)

    def close(self) -> None:
        self.closed.set()


def next_values(source: BackgroundSource) -> list[int | None]:
    assert source.settle(WAIT)
    return list(source.read())


def test_each_reading_gives_the_round_before() -> None:
    inner = Slow()
    source = BackgroundSource(inner)
    source.open()
    assert [next_values(source) for _ in range(3)] == [[1], [2], [3]]
    source.close()
    assert inner.closed.is_set()


def test_a_round_under_way_is_missing_and_holds_nobody_up() -> None:
    inner = Slow()
    inner.go.clear()
    source = BackgroundSource(inner)
    source.open()
    assert inner.reading.wait(WAIT)
    assert [list(source.read()) for _ in range(3)] == [[None]] * 3
    inner.go.set()
    assert next_values(source) == [1]
    source.close()


def test_a_round_that_does_not_end_is_an_outage_until_it_ends() -> None:
    inner = Slow()
    source = BackgroundSource(inner)
    assert source.outage() is None
    source.open()
    assert source.settle(WAIT)
    assert source.outage() is None
    inner.go.clear()
    inner.reading.clear()
    before_ns = time.monotonic_ns()
    source.read()
    assert inner.reading.wait(WAIT)
    outage = source.outage()
    assert outage is not None and outage.since_ns >= before_ns
    inner.go.set()
    assert source.settle(WAIT)
    assert source.outage() is None
    source.close()


def test_what_a_hung_round_returns_in_the_end_is_missing_and_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0]
    monkeypatch.setattr("reveal_collector.readers.background.time.monotonic_ns", lambda: now[0])
    inner = Slow()
    inner.go.clear()
    source = BackgroundSource(inner)
    source.open()
    assert inner.reading.wait(WAIT)
    now[0] += HUNG_NS
    inner.go.set()
    assert [next_values(source), next_values(source)] == [[None], [2]]
    source.close()


def test_a_round_from_before_a_standstill_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0]
    monkeypatch.setattr("reveal_collector.readers.background.time.monotonic_ns", lambda: now[0])
    source = BackgroundSource(Slow())
    source.open()
    assert next_values(source) == [1]
    assert source.settle(WAIT)
    now[0] += 60_000_000_000
    assert [next_values(source), next_values(source)] == [[None], [3]]
    source.close()


def test_closing_does_not_wait_for_a_device_that_hangs() -> None:
    inner = Slow()
    inner.go.clear()
    source = BackgroundSource(inner)
    source.open()
    assert inner.reading.wait(WAIT)
    source.close()
    assert not inner.closed.is_set()
    inner.go.set()
    assert inner.closed.wait(WAIT)  # its files are closed when it comes back


def test_an_error_is_passed_on_and_the_next_round_is_tried() -> None:
    inner = Slow()
    inner.raises = OSError(5, "Input/output error")
    source = BackgroundSource(inner)
    source.open()
    with pytest.raises(OSError, match="Input/output error"):
        next_values(source)
    assert next_values(source) == [1]
    source.close()


def test_a_defect_does_not_end_the_thread() -> None:
    inner = Slow()
    inner.raises = ZeroDivisionError("oops")
    source = BackgroundSource(inner)
    source.open()
    with pytest.raises(OSError, match="ZeroDivisionError: oops"):
        next_values(source)
    assert next_values(source) == [1]
    source.close()


def test_new_columns_come_with_their_own_values() -> None:
    inner = Slow()
    source = BackgroundSource(inner)
    source.open()
    assert next_values(source) == [1]
    assert source.settle(WAIT)
    inner.channels = (*inner.channels, channel("network.nic.rx_errs", "b"))
    inner.raises = LayoutChanged("slow")
    assert list(source.read()) == [2]  # the round that was over before
    with pytest.raises(LayoutChanged):
        next_values(source)
    assert source.channels == inner.channels
    assert len(next_values(source)) == 2
    source.close()


def test_it_can_be_opened_again() -> None:
    inner = Slow()
    source = BackgroundSource(inner)
    source.open()
    next_values(source)
    source.close()
    source.open()
    assert next_values(source) in ([2], [3])  # a round may have been under way
    source.close()
    assert source.channels == ()


def test_it_is_not_opened_again_while_an_earlier_round_hangs() -> None:
    """Its thread still uses the files, and closes them when it returns."""
    inner = Slow()
    inner.go.clear()
    source = BackgroundSource(inner)
    source.open()
    assert inner.reading.wait(WAIT)
    with pytest.raises(Unsupported, match="not returned"):
        source.open()
    inner.go.set()
    assert inner.closed.wait(WAIT)
    wait_until(lambda: _opens(source))
    assert next_values(source) == [2]
    source.close()


def _opens(source: BackgroundSource) -> bool:
    try:
        source.open()
    except Unsupported:
        return False
    return True


def test_it_states_what_its_source_states() -> None:
    class Stating(Slow):
        degraded = ("slow: numbers are missing",)

    assert BackgroundSource(Slow()).degraded == ()
    assert BackgroundSource(Stating()).degraded == ("slow: numbers are missing",)
