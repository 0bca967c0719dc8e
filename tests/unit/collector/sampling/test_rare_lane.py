"""The rare lane: a source that hangs in the kernel holds up no other, and old values are missing.

A read of an empty pipe hangs for real.  Time is a number, and every wait is for an event.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import pytest

from reveal_collector.readers.source import HUNG_NS
from reveal_collector.sampling.feed import Feed
from reveal_collector.sampling.rare_feed import RARE_PERIOD_NS, TOLERANCE_NS, RareFeed
from reveal_collector.sampling.rare_lane import HAND_OVER_NS, RareLane
from reveal_contract.metric import Lane
from support.pipe_source import Pipe
from support.polling import wait_until

WAIT = 10.0


class Stage:
    """A lane with two rare sources and a broken fast one, on a clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 100 * RARE_PERIOD_NS
        self.pipes = [Pipe("first", Lane.RARE), Pipe("second", Lane.RARE)]
        self.feeds = [Feed(pipe) for pipe in self.pipes]
        self.rare = [RareFeed(feed) for feed in self.feeds]
        self.fast = Pipe("fast", Lane.RARE)
        self.broken = Feed(self.fast)
        self.lane = RareLane(self.rare, [*self.feeds, self.broken], lambda: self.now)

    def values(self) -> list[int | None]:
        return [rare.latest_values(self.now)[0] for rare in self.rare]

    def hang_first(self) -> None:
        """Start the lane; its first source hangs until the lane gets another thread."""
        self.lane.start()
        assert self.pipes[0].reading.wait(WAIT)
        self.now += HAND_OVER_NS
        self.lane.check()


@pytest.fixture
def stage() -> Iterator[Stage]:
    built = Stage()
    yield built
    built.lane.stop(0)
    for pipe in (*built.pipes, built.fast):
        os.close(pipe.writer)  # the end of the pipe ends a read that hangs


def test_a_source_that_hangs_leaves_the_others_their_values(stage: Stage) -> None:
    stage.pipes[1].put(7)
    stage.hang_first()
    wait_until(lambda: stage.values() == [None, 7])
    stage.pipes[1].put(8)
    stage.now += RARE_PERIOD_NS
    stage.lane.release(stage.rare[0])  # wakes the lane, which cannot release this one now
    wait_until(lambda: stage.values() == [None, 8])
    assert not stage.rare[0].released


def test_broken_sources_are_reopened_while_another_hangs(stage: Stage) -> None:
    stage.broken.broken = True
    stage.pipes[1].put(7)
    stage.hang_first()
    wait_until(lambda: stage.fast.opened == 1)
    wait_until(lambda: not stage.broken.broken)


def test_a_reopening_that_hangs_holds_up_no_read_and_no_other_reopening(stage: Stage) -> None:
    other = Pipe("other", Lane.SLOW)
    stage.fast.open = stage.fast.read  # type: ignore[method-assign, assignment]
    stage.broken.broken = True
    stage.feeds.append(Feed(other))
    stage.feeds[-1].broken = True
    stage.lane = RareLane(stage.rare, [stage.broken, stage.feeds[-1]], lambda: stage.now)
    stage.pipes[0].put(1)
    stage.pipes[1].put(2)
    stage.lane.start()
    assert stage.fast.reading.wait(WAIT)
    stage.now += HAND_OVER_NS
    stage.lane.check()
    wait_until(lambda: other.opened == 1 and not stage.feeds[-1].broken)
    stage.pipes[0].put(3)
    stage.pipes[1].put(4)
    stage.now += RARE_PERIOD_NS
    stage.lane.release(stage.rare[0])  # wakes the lane
    wait_until(lambda: stage.values()[1] == 4)
    assert stage.broken.broken
    assert stage.broken.outage(stage.broken.busy_since_ns + HUNG_NS) is not None
    os.close(other.writer)


def test_a_source_that_hangs_is_stated_and_no_longer_when_it_answers(stage: Stage) -> None:
    stage.pipes[1].put(7)
    stage.hang_first()
    began_ns = stage.feeds[0].busy_since_ns
    assert stage.feeds[0].outage(began_ns + HUNG_NS - 1) is None
    outage = stage.feeds[0].outage(began_ns + HUNG_NS)
    assert outage is not None and outage.since_ns == began_ns
    wait_until(lambda: stage.values()[1] == 7)
    assert stage.feeds[1].outage(began_ns + HUNG_NS) is None
    stage.pipes[0].put(5)
    wait_until(lambda: stage.values() == [5, 7])
    assert stage.feeds[0].outage(began_ns + HUNG_NS) is None


def test_what_a_hung_read_returns_in_the_end_is_read_again(stage: Stage) -> None:
    """The first file may have been read long before the last one, in which the read hung."""
    stage.pipes[1].put(7)
    stage.hang_first()
    stage.now += HUNG_NS
    stage.pipes[0].put(5, 6)
    wait_until(lambda: stage.values()[0] == 6)


def test_a_thread_is_handed_over_once_and_only_after_a_while(stage: Stage) -> None:
    before = set(threading.enumerate())
    stage.lane.start()
    assert stage.pipes[0].reading.wait(WAIT)
    stage.now += HAND_OVER_NS - 1
    stage.lane.check()
    assert len(set(threading.enumerate()) - before) == 1
    stage.pipes[1].put(7)
    stage.now += 1
    stage.lane.check()
    wait_until(lambda: stage.values()[1] == 7)
    stage.now += HUNG_NS
    stage.lane.check()
    assert len(set(threading.enumerate()) - before) == 2


def test_a_defect_in_opening_does_not_end_the_lane(stage: Stage) -> None:
    def fail() -> None:
        raise KeyError("a defect")

    stage.fast.open = fail  # type: ignore[method-assign]
    stage.broken.broken = True
    stage.broken.retry_due_ns = stage.now
    stage.pipes[0].put(1)
    stage.pipes[1].put(2)
    stage.lane.run_due(stage.now)
    assert stage.broken.broken and stage.broken.retry_due_ns > stage.now
    stage.pipes[0].put(3)
    stage.pipes[1].put(4)
    stage.now += RARE_PERIOD_NS
    stage.lane.run_due(stage.now)
    assert stage.values() == [3, 4]


def test_a_value_is_missing_once_its_next_read_is_overdue(stage: Stage) -> None:
    stage.pipes[0].put(3)
    stage.rare[0].refresh(lambda: stage.now)
    read_ns = stage.now
    assert stage.rare[0].latest_values(read_ns + RARE_PERIOD_NS + TOLERANCE_NS) == [3]
    assert stage.rare[0].latest_values(read_ns + RARE_PERIOD_NS + TOLERANCE_NS + 1) == (None,)


def test_a_source_that_was_never_read_has_no_values(stage: Stage) -> None:
    assert stage.rare[0].latest_values(1) == (None,)
