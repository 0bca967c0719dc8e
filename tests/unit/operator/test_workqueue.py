"""The operator's queue: each key once, one worker for a key, growing pauses."""

from __future__ import annotations

import asyncio
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_operator.workqueue import (
    FIRST_PAUSE_S,
    JITTER,
    LONGEST_PAUSE_S,
    KeyedQueue,
    work,
)
from support.fake_clock import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def queue(clock: FakeClock) -> KeyedQueue:
    return KeyedQueue(clock, Random(1))


def test_a_key_is_in_it_once(queue: KeyedQueue) -> None:
    for _ in range(3):
        queue.add("a")
    assert queue.pop() == "a"
    assert queue.pop() is None


def test_the_key_due_longest_comes_first(queue: KeyedQueue, clock: FakeClock) -> None:
    queue.add("late", 2.0)
    queue.add("soon", 1.0)
    assert queue.pop() is None
    clock.now += 5
    assert [queue.pop(), queue.pop()] == ["soon", "late"]


def test_the_earlier_of_two_times_counts(queue: KeyedQueue, clock: FakeClock) -> None:
    queue.add("a", 60.0)
    queue.add("a", 1.0)
    queue.add("a", 30.0)
    clock.now += 1
    assert queue.pop() == "a"
    queue.done("a")
    clock.now += 100
    assert queue.pop() is None


def test_a_key_has_a_single_worker(queue: KeyedQueue) -> None:
    queue.add("a")
    queue.pop()
    queue.add("a")
    assert queue.pop() is None
    queue.done("a")
    assert queue.pop() == "a"


def test_pauses_double_up_to_a_limit(queue: KeyedQueue, clock: FakeClock) -> None:
    pauses = []
    for _ in range(15):
        queue.add("a")
        assert queue.pop() == "a"
        pauses.append(queue.failed("a"))
        clock.now += 2 * LONGEST_PAUSE_S
    for count, pause in enumerate(pauses):
        nominal = min(FIRST_PAUSE_S * 2**count, LONGEST_PAUSE_S)
        assert nominal * JITTER[0] <= pause <= nominal * JITTER[1]
    assert len(set(pauses)) == len(pauses)  # jitter: none twice


def test_a_failed_key_returns_after_its_pause(queue: KeyedQueue, clock: FakeClock) -> None:
    queue.add("a")
    queue.pop()
    pause = queue.failed("a")
    clock.now += pause * 0.99
    assert queue.pop() is None
    clock.now += pause * 0.02
    assert queue.pop() == "a"


def test_success_forgets_failures(queue: KeyedQueue, clock: FakeClock) -> None:
    for _ in range(8):
        queue.add("a")
        queue.pop()
        queue.failed("a")
    queue.add("a")
    queue.pop()
    queue.done("a")
    queue.add("a")
    queue.pop()
    assert queue.failed("a") <= FIRST_PAUSE_S * JITTER[1]


def test_depth_and_age_count_what_is_due_or_worked_on(queue: KeyedQueue, clock: FakeClock) -> None:
    assert (queue.depth, queue.oldest) == (0, 0.0)
    queue.add("due")
    queue.add("later", 100.0)
    clock.now += 7
    assert (queue.depth, queue.oldest) == (1, 7.0)
    queue.pop()
    clock.now += 5
    assert (queue.depth, queue.oldest, queue.working) == (1, 5.0, 1)
    queue.done("due")
    assert (queue.depth, queue.oldest) == (0, 0.0)
    assert queue.idle_for() == 88.0


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(("add", "done", "fail")))))
def test_never_two_workers_a_key_and_none_is_lost(steps: list[tuple[str, str]]) -> None:
    clock = FakeClock()
    queue = KeyedQueue(clock, Random(1))
    working: set[str] = set()
    owed: set[str] = set()
    for key, step in steps:
        if step == "add":
            queue.add(key)
            owed.add(key)
        elif key in working:
            working.discard(key)
            if step == "done":
                queue.done(key)
            else:
                queue.failed(key)
                owed.add(key)
        taken = queue.pop()
        if taken is not None:
            assert taken not in working
            working.add(taken)
            owed.discard(taken)
        clock.now += LONGEST_PAUSE_S * 2
    for key in working:
        queue.done(key)
    left = set(iter(queue.pop, None))
    assert left == owed


def run_until(queue: KeyedQueue, handle: object, done: asyncio.Event, workers: int) -> None:
    async def main() -> None:
        gate = asyncio.Event()
        gate.set()
        loop = asyncio.create_task(work(queue, handle, gate, workers))  # type: ignore[arg-type]
        await asyncio.wait_for(done.wait(), 5)
        loop.cancel()
        await asyncio.gather(loop, return_exceptions=True)

    asyncio.run(main())


def test_all_keys_are_handled_by_few_workers() -> None:
    queue, done = KeyedQueue(), asyncio.Event()
    handled: list[str] = []
    most = running = 0

    async def handle(key: str) -> None:
        nonlocal most, running
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.001)
        running -= 1
        handled.append(key)
        if len(handled) == 20:
            done.set()

    for number in range(20):
        queue.add(str(number))
    run_until(queue, handle, done, workers=3)
    assert sorted(handled, key=int) == [str(number) for number in range(20)]
    assert most == 3


def test_a_handler_that_raises_is_retried_and_stops_no_other() -> None:
    queue, done = KeyedQueue(random=Random(1)), asyncio.Event()
    tries: list[str] = []

    async def handle(key: str) -> None:
        tries.append(key)
        if key == "bad" and tries.count("bad") == 1:
            raise RuntimeError("no")
        if tries.count("bad") == 2:
            done.set()

    queue.add("bad")
    queue.add("good")
    run_until(queue, handle, done, workers=1)
    assert tries == ["bad", "good", "bad"]


def test_a_handler_that_asks_for_another_visit_is_called_again() -> None:
    queue, done = KeyedQueue(), asyncio.Event()
    calls = 0

    async def handle(key: str) -> float | None:
        nonlocal calls
        calls += 1
        if calls == 2:
            done.set()
        return 0.01 if calls == 1 else None

    queue.add("a")
    run_until(queue, handle, done, workers=1)
    assert queue.idle_for() is None


def test_nothing_is_handled_while_the_gate_is_shut() -> None:
    async def main() -> list[str]:
        queue, gate = KeyedQueue(), asyncio.Event()
        handled: list[str] = []

        async def handle(key: str) -> None:
            handled.append(key)

        queue.add("a")
        loop = asyncio.create_task(work(queue, handle, gate, 1))
        for _ in range(20):
            await asyncio.sleep(0)
        assert not handled
        gate.set()
        for _ in range(20):
            await asyncio.sleep(0)
        loop.cancel()
        await asyncio.gather(loop, return_exceptions=True)
        return handled

    assert asyncio.run(main()) == ["a"]
