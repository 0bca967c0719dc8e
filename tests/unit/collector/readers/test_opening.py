"""Sources that hang when they are opened: the others are opened, and the hung one joins later."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Sequence

import pytest

from reveal_collector.kernel_interfaces.errors import Unsupported
from reveal_collector.readers.opening import SourceOpener
from reveal_collector.sampling.feed import Feed
from reveal_contract.channels import Channel
from reveal_contract.metric import Kind, Lane

WAIT = 10.0


class Device:
    """A source that opens by a read of a pipe; an empty pipe hangs."""

    name, lane = "device", Lane.SLOW

    def __init__(self, error: Exception | None = None, driver: str = "other") -> None:
        self.driver = driver
        self.channels: tuple[Channel, ...] = ()
        self.reader, self.writer = os.pipe()
        self.opened = 0
        self._error = error

    def open(self) -> None:
        os.read(self.reader, 1)
        self.opened += 1
        if self._error is not None:
            raise self._error
        self.channels = (Channel("device.x", "", Kind.GAUGE, 1.0, Lane.SLOW),)

    def read(self) -> Sequence[int | None]:
        return [5]

    def close(self) -> None:
        self.channels = ()

    def answer(self) -> None:
        os.write(self.writer, b"x")


@pytest.fixture
def device() -> Iterator[Device]:
    created = Device(driver="silent")
    yield created
    os.close(created.writer)  # the end of the pipe ends a read that hangs


def test_a_source_that_hangs_does_not_hold_up_the_next_source(device: Device) -> None:
    opener, good = SourceOpener(timeout_s=0.01), Device()
    good.answer()
    hung = opener.open(device)
    assert not hung.ended.is_set()
    opened = SourceOpener(timeout_s=WAIT).open(good)
    assert opened.ended.is_set() and opened.error is None
    device.answer()
    assert hung.ended.wait(WAIT)


def test_the_thread_that_hangs_is_left_to_its_source(device: Device) -> None:
    opener, good = SourceOpener(timeout_s=0.01), Device()
    assert not opener.open(device).ended.is_set()
    good.answer()
    assert opener.open(good).ended.wait(WAIT)


def test_a_refusal_is_kept() -> None:
    refused = Device(Unsupported("no such device"))
    refused.answer()
    opening = SourceOpener(timeout_s=WAIT).open(refused)
    assert isinstance(opening.error, Unsupported)


def test_a_source_whose_first_opening_hung_is_broken_until_it_has_opened(device: Device) -> None:
    opening = SourceOpener(timeout_s=0.01).open(device)
    feed = Feed(device, absent=True)
    feed.await_opening(opening)
    feed.reopen(opening.began_ns)
    assert (feed.broken, feed.absent, device.opened) == (True, False, 0)
    assert feed.outage(opening.began_ns + 60_000_000_000) is not None
    device.answer()
    assert opening.ended.wait(WAIT)
    feed.reopen(feed.retry_due_ns)
    assert (feed.broken, device.opened) == (False, 1)
    assert feed.outage(opening.began_ns + 60_000_000_000) is None
    assert [column.metric for column in feed.columns] == ["device.x"]


def test_a_source_that_was_refused_after_it_hung_is_opened_again_later() -> None:
    device = Device(Unsupported("no such device"))
    opening = SourceOpener(timeout_s=0.01).open(device)
    feed = Feed(device, absent=True)
    feed.await_opening(opening)
    device.answer()
    assert opening.ended.wait(WAIT)
    device.answer()
    feed.reopen(feed.retry_due_ns)
    assert (feed.broken, device.opened) == (True, 2)


def test_a_source_of_a_driver_that_hangs_opens_after_it_without_another_wait(
    device: Device,
) -> None:
    opener, second = SourceOpener(timeout_s=0.01), Device(driver="silent")
    second.answer()
    first_opening, second_opening = opener.open(device), opener.open(second)
    opener.close()
    assert (first_opening.ended.is_set(), second_opening.ended.is_set()) == (False, False)
    device.answer()
    assert first_opening.ended.wait(WAIT) and second_opening.ended.wait(WAIT)
    assert (second_opening.error, second.opened) == (None, 1)


def test_many_sources_that_hang_delay_the_start_little() -> None:
    opener, silent = SourceOpener(timeout_s=1.2), [Device(driver=f"d{n}") for n in range(3)]
    began = time.monotonic()
    openings = [opener.open(device) for device in silent]
    assert time.monotonic() - began < 3.6
    assert not any(opening.ended.is_set() for opening in openings)
    for device in silent:
        device.answer()


def test_a_source_that_hangs_has_a_time_since_when(device: Device) -> None:
    opening = SourceOpener(timeout_s=0.01).open(device)
    refusal = opening.refusal()
    assert isinstance(refusal, Unsupported)
    assert re.fullmatch(r"its driver has not answered since \d\d:\d\d:\d\dZ", refusal.reason)
    device.answer()
    assert opening.ended.wait(WAIT)
    assert opening.refusal() is None
