"""Calls that may never return, as those of a driver whose device is stuck, in threads of their own.

A thread that hangs in the kernel or in a driver's library cannot be ended.  A call that takes too
long therefore keeps its thread, and the calls after it get another one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from reveal_collector.readers.source import HUNG_NS

T = TypeVar("T")


class GuardedCall(Generic[T]):
    """One call of a ``function``: ``ended`` is set afterwards, with the ``error`` if any."""

    def __init__(self, function: Callable[[], T]) -> None:
        self.began_ns = time.monotonic_ns()
        self.ended = threading.Event()
        self.error: Exception | None = None
        self._function = function
        self._results: list[T] = []

    def run(self) -> None:
        """Run the function and keep its result or error."""
        try:
            self._results.append(self._function())
        except Exception as error:  # the caller decides what an error means
            self.error = error
        self.ended.set()

    def result(self) -> T:
        """Return the result of a call that has ended; raises its error."""
        if self.error is not None:
            raise self.error
        return self._results[0]


class CallThread:
    """A thread that runs calls in their order, until ``finish``."""

    def __init__(self, name: str) -> None:
        self._queue: SimpleQueue[GuardedCall[Any] | None] = SimpleQueue()
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def put(self, call: GuardedCall[Any]) -> None:
        """Run this call after the earlier ones."""
        self._queue.put(call)

    def finish(self) -> None:
        """End the thread after its present calls."""
        self._queue.put(None)

    def _run(self) -> None:
        while (call := self._queue.get()) is not None:
            call.run()


class GuardedCalls:
    """Runs calls by name and waits for each, but not for those that hang.

    A call that hangs is not repeated until it returns, so that it keeps one thread at most.
    """

    def __init__(self, thread_name: str, timeout_s: float = HUNG_NS / 1e9) -> None:
        self._thread_name, self._timeout_s = thread_name, timeout_s
        self._thread: CallThread | None = None
        self._hung: dict[str, GuardedCall[Any]] = {}

    @property
    def hung_since_ns(self) -> int:
        """When the oldest call that hangs began (monotonic); 0 while none does."""
        # a copy, as another thread may ask
        hung = (call.began_ns for call in list(self._hung.values()) if not call.ended.is_set())
        return min(hung, default=0)

    def call(self, name: str, function: Callable[[], T]) -> T:
        """Return the function's result; raises its error, or ``TimeoutError`` where it hangs."""
        if name in self._hung and not self._hung[name].ended.is_set():
            raise TimeoutError(f"{name}: an earlier call has not returned")
        self._hung.pop(name, None)  # its result is old
        if self._thread is None:
            self._thread = CallThread(self._thread_name)
        call = GuardedCall(function)
        self._thread.put(call)
        if not call.ended.wait(self._timeout_s):
            self._hung[name] = call
            self.release()
            raise TimeoutError(f"{name}: no answer in {self._timeout_s:g} s")
        return call.result()

    def release(self) -> None:
        """End the thread after its present call; the next call gets another one."""
        if self._thread is not None:
            self._thread.finish()
            self._thread = None
