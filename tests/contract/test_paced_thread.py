"""A paced thread works a share of the time, rests without work, and ends when it is closed."""

from __future__ import annotations

import threading
import time

from reveal_contract.runtime.paced_thread import PacedThread
from support.polling import wait_until

WORK_S = 0.02


class Worker:
    """Has so many pieces of work; notes when each began."""

    def __init__(self, pieces: int) -> None:
        self.left, self.begun = pieces, list[float]()

    def __call__(self) -> bool:
        if not self.left:
            return False
        self.left -= 1
        self.begun.append(time.monotonic())
        time.sleep(WORK_S)
        return True


def test_its_pauses_follow_its_share() -> None:
    worker = Worker(3)
    thread = PacedThread("paced", worker, share=0.25, idle_seconds=0.01)
    thread.start()
    wait_until(lambda: worker.left == 0, "all work is done")
    thread.close(5)
    gaps = [after - before for before, after in zip(worker.begun, worker.begun[1:], strict=False)]
    assert min(gaps) >= 4 * WORK_S * 0.95


def test_a_pause_has_a_limit() -> None:
    worker = Worker(3)
    thread = PacedThread("paced", worker, share=1e-6, idle_seconds=0.01, most_pause=0.01)
    thread.start()
    wait_until(lambda: worker.left == 0, "all work is done")
    thread.close(5)


def test_it_finishes_its_work_only_if_asked() -> None:
    for finish in (False, True):
        worker = Worker(3)
        thread = PacedThread("paced", worker, share=1e-6, idle_seconds=0.01)
        thread.start()
        wait_until(lambda worker=worker: worker.begun, "the first piece has begun")  # type: ignore[misc]
        thread.close(5, finish=finish)
        assert worker.left == (0 if finish else 2)


def test_closing_waits_for_a_limited_time_and_needs_no_start() -> None:
    stuck = threading.Event()
    thread = PacedThread("paced", lambda: stuck.wait(10), share=0.5, idle_seconds=0.01)
    thread.close(5)
    thread.start()  # it was closed: it calls nothing
    blocked = PacedThread("paced", lambda: stuck.wait(10), share=0.5, idle_seconds=0.01)
    blocked.start()
    began = time.monotonic()
    blocked.close(0.05)
    assert time.monotonic() - began < 5
    stuck.set()
