"""Calls that hang keep their thread, and no other call waits for them."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import pytest

from reveal_collector.readers.guarded_call import GuardedCalls
from support.polling import wait_until

WAIT_S = 10.0


class Pipe:
    """A call that hangs until ``answer``."""

    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()
        self.calls = 0

    def __call__(self) -> int:
        self.calls += 1
        return os.read(self.reader, 1)[0]

    def answer(self, value: int) -> None:
        os.write(self.writer, bytes([value]))


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    created = Pipe()
    yield created
    os.close(created.writer)  # the end of the pipe ends a read that hangs


def test_results_and_errors_are_those_of_the_function() -> None:
    calls = GuardedCalls("test", WAIT_S)
    assert calls.call("a", lambda: 5) == 5
    with pytest.raises(KeyError, match="missing"):
        calls.call("a", lambda: {}["missing"])
    assert calls.hung_since_ns == 0


def test_a_call_that_hangs_is_not_repeated_and_holds_up_no_other(pipe: Pipe) -> None:
    calls = GuardedCalls("test", timeout_s=0.05)
    for _ in range(3):
        with pytest.raises(TimeoutError, match="device"):
            calls.call("device", pipe)
        assert calls.call("other", lambda: 7) == 7
    assert pipe.calls == 1
    assert calls.hung_since_ns > 0


def test_a_call_that_answered_late_is_repeated(pipe: Pipe) -> None:
    calls = GuardedCalls("test", timeout_s=0.05)
    with pytest.raises(TimeoutError):
        calls.call("device", pipe)
    pipe.answer(1)
    wait_until(lambda: not calls.hung_since_ns)
    pipe.answer(2)
    assert calls.call("device", pipe) == 2


def test_a_released_thread_ends() -> None:
    before = threading.active_count()
    calls = GuardedCalls("test-released", WAIT_S)
    names = {calls.call("a", threading.current_thread).name}
    calls.release()
    assert names == {"test-released"}
    wait_until(lambda: threading.active_count() <= before)
