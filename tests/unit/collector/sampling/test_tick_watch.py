"""A source that hangs in the tick thread: the thread is replaced, and the source left out.

A read of an empty pipe hangs for real; every wait is for an event.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence

import pytest

from reveal_collector.readers.source import HUNG_NS
from reveal_collector.sampling.feed import Feed, ThreadReplaced
from reveal_collector.sampling.sampler import Sampler
from reveal_collector.sampling.tick_watch import TickWatch
from reveal_contract.channels import Channel
from reveal_contract.metric import Kind, Lane
from support.pipe_source import Pipe
from support.polling import wait_until

WAIT = 10.0


class Steady:
    """A source that always answers."""

    name, lane = "steady", Lane.FAST
    channels: tuple[Channel, ...] = (Channel("steady.x", "", Kind.GAUGE, 1.0, Lane.FAST),)

    def open(self) -> None: ...

    def read(self) -> Sequence[int | None]:
        return [1]

    def close(self) -> None: ...


class TickThread:
    """A thread that calls a feed once, and how it ended."""

    def __init__(self, call: Callable[[], object]) -> None:
        self._call = call
        self.replaced = self.returned = False
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            self._call()
        except ThreadReplaced:
            self.replaced = True
        else:
            self.returned = True

    def join(self) -> None:
        self.thread.join(WAIT)
        assert not self.thread.is_alive()


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    built = Pipe("pipe", Lane.SLOW)
    yield built
    os.close(built.writer)  # the end of the pipe ends a read that hangs


@pytest.fixture
def replaced() -> list[bool]:
    return []


def watch(feed: Feed, replaced: list[bool]) -> TickWatch:
    return TickWatch([feed], lambda: replaced.append(True))


def test_a_call_that_two_checks_find_is_left_to_its_thread(
    pipe: Pipe, replaced: list[bool]
) -> None:
    feed = Feed(pipe)
    tick = TickThread(feed.read)
    assert pipe.reading.wait(WAIT)
    began_ns, checks = feed.busy_since_ns, watch(feed, replaced)
    checks.check()
    assert not replaced and not feed.broken
    checks.check()
    checks.check()
    assert replaced == [True] and feed.broken
    assert feed.read() == (None,)  # by the new thread
    outage = feed.outage(began_ns + HUNG_NS)
    assert outage is not None and outage.since_ns == began_ns

    feed.reopen(feed.retry_due_ns)  # the read still hangs
    assert feed.broken and not pipe.opened
    pipe.put(5)
    tick.join()
    assert tick.replaced and feed.outage(began_ns + HUNG_NS) is None
    pipe.put(6, 7)
    feed.reopen(feed.retry_due_ns)
    assert not feed.broken and pipe.opened == 1
    assert feed.read() == [7]  # the byte before was read to try the source


def test_calls_that_end_between_two_checks_are_no_hang(pipe: Pipe, replaced: list[bool]) -> None:
    feed = Feed(pipe)
    checks = watch(feed, replaced)
    for value in (1, 2):
        pipe.reading.clear()
        tick = TickThread(feed.read)
        assert pipe.reading.wait(WAIT)
        checks.check()
        pipe.put(value)
        tick.join()
        assert tick.returned
    assert not replaced and not feed.broken


@pytest.mark.parametrize("lane", [Lane.RARE, Lane.FAST])
def test_rare_and_broken_sources_are_left_to_their_own_threads(
    lane: Lane, replaced: list[bool]
) -> None:
    pipe = Pipe("pipe", lane)
    feed = Feed(pipe)
    feed.broken = lane is not Lane.RARE
    feed.busy_since_ns = 5
    checks = watch(feed, replaced)
    checks.check()
    checks.check()
    assert not replaced
    os.close(pipe.writer)


class Lookup(Pipe):
    """A source that looks at files to find out whether it is stale, and what is to be scanned."""

    def stale(self) -> bool:
        self.reading.set()
        return not os.read(self.reader, 1)[0]

    def scans(self) -> None:
        self.stale()


@pytest.mark.parametrize("call", [Feed.is_stale, Feed.scans])
def test_every_call_of_the_tick_thread_is_watched(
    call: Callable[[Feed], object], replaced: list[bool]
) -> None:
    source = Lookup("lookup", Lane.SLOW)
    feed = Feed(source)
    tick = TickThread(lambda: call(feed))
    assert source.reading.wait(WAIT)
    checks = watch(feed, replaced)
    checks.check()
    checks.check()
    assert replaced == [True] and feed.broken
    os.close(source.writer)
    tick.join()
    assert tick.replaced


class Gone(Steady):
    """A source whose folder disappeared."""

    def stale(self) -> bool:
        raise FileNotFoundError("/sys/gone")


def test_a_source_whose_files_are_gone_is_read_by_its_own_code() -> None:
    feed = Feed(Gone())
    assert feed.is_stale() and not feed.broken and not feed.busy_since_ns


def test_the_other_sources_of_the_python_sampler_go_on(pipe: Pipe) -> None:
    slices: list[list[int]] = []
    sampler = Sampler("n", [Steady(), pipe], lambda raw: slices.append(list(raw.fast)))
    sampler.start()
    try:
        assert pipe.reading.wait(WAIT)
        sampler.tick_watch.check()
        sampler.tick_watch.check()
        wait_until(lambda: len(slices) > 1)
        assert slices[-1] == [1] * 10
        assert sampler.feeds[1].broken
        assert sampler.counts.skipped_slices >= 1
        pipe.put(*[9] * 100)
        wait_until(lambda: not sampler.feeds[1].broken)
    finally:
        sampler.stop()
