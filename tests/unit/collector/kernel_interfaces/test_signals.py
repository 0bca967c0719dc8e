"""Signals that end the collector, in whichever thread they arrive."""

from __future__ import annotations

import os
import resource
import signal
import threading
from collections.abc import Iterator

import pytest

from reveal_collector.kernel_interfaces.signals import TerminationSignal

NUMBERS = (signal.SIGTERM, signal.SIGINT)
LONG_S = 20.0
FD_SETSIZE = 1_024  # sys/select.h
MONTHS_S = 100 * 86_400.0  # more milliseconds than 32 bits hold


@pytest.fixture(autouse=True)
def put_back() -> Iterator[None]:
    handlers = {number: signal.getsignal(number) for number in NUMBERS}
    for number in NUMBERS:  # SIGINT is ignored where the tests run in the background of a script
        signal.signal(number, signal.SIG_DFL)
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture
def other_thread() -> Iterator[None]:
    """Run a thread that is the only one with unblocked signals."""
    over = threading.Event()
    other = threading.Thread(target=over.wait)
    other.start()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, NUMBERS)
    yield
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    over.set()
    other.join()


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.usefixtures("other_thread")
def test_a_signal_that_another_thread_got_ends_the_wait(number: int) -> None:
    with TerminationSignal() as ending:
        sender = threading.Timer(0.05, os.kill, (os.getpid(), number))
        sender.start()
        assert ending.wait(LONG_S)
        sender.join()


def test_a_signal_from_before_the_wait_counts() -> None:
    with TerminationSignal() as ending:
        os.kill(os.getpid(), signal.SIGTERM)
        assert ending.wait(LONG_S)


def test_a_wait_may_be_of_months() -> None:
    with TerminationSignal() as ending:
        os.kill(os.getpid(), signal.SIGTERM)
        assert ending.wait(MONTHS_S)


def test_a_process_may_have_more_files_open_than_select_takes() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(FD_SETSIZE)]
    try:
        with TerminationSignal() as ending:
            assert not ending.wait(0.01)
    finally:
        for descriptor in opened:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_without_a_signal_the_time_ends_it() -> None:
    with TerminationSignal() as ending:
        assert not ending.wait(0.01)


def test_a_second_signal_ends_the_process_immediately() -> None:
    child = os.fork()
    if child == 0:
        with TerminationSignal():
            for _ in range(2):
                signal.raise_signal(signal.SIGTERM)
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 128 + signal.SIGTERM


def test_the_previous_wakeup_descriptor_is_restored() -> None:
    before = signal.set_wakeup_fd(-1)
    with TerminationSignal():
        pass
    assert signal.set_wakeup_fd(before) == -1


def test_an_interrupt_that_was_ignored_before_stays_ignored() -> None:
    """As that of a command in the background of a script; SIGTERM ends it nevertheless."""
    for number in NUMBERS:
        signal.signal(number, signal.SIG_IGN)
    with TerminationSignal() as ending:
        os.kill(os.getpid(), signal.SIGINT)
        assert not ending.wait(0)
        os.kill(os.getpid(), signal.SIGTERM)
        assert ending.wait(LONG_S)
