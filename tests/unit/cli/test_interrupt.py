"""Signals: a flag by default; under ``raising`` they end long work."""

import os
import signal
import time

import pytest

from reveal_cli.interrupt import SIGNALS, Interrupt, Interrupted


@pytest.fixture
def interrupt(own_signals: None) -> Interrupt:
    result = Interrupt()
    result.install()
    return result


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_only_sets_a_flag(interrupt: Interrupt, number: int) -> None:
    assert not interrupt.requested
    os.kill(os.getpid(), number)
    assert interrupt.requested


def test_raising_ends_the_block_and_only_once(interrupt: Interrupt) -> None:
    with pytest.raises(Interrupted), interrupt.raising():
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)  # must not interrupt the clean-up
    os.kill(os.getpid(), signal.SIGTERM)  # and has no effect after the block


def test_an_earlier_signal_ends_the_block_immediately(interrupt: Interrupt) -> None:
    os.kill(os.getpid(), signal.SIGINT)
    with pytest.raises(Interrupted), interrupt.raising():
        pytest.fail("the block was entered")


def test_a_limit_ends_a_block_that_began_after_the_signal(interrupt: Interrupt) -> None:
    os.kill(os.getpid(), signal.SIGINT)
    began = time.monotonic()
    with pytest.raises(Interrupted), interrupt.raising(limit=0.05):
        while time.monotonic() < began + 5:
            pass
    assert time.monotonic() - began < 1


def test_a_limit_not_reached_leaves_no_alarm(interrupt: Interrupt) -> None:
    with interrupt.raising(limit=5):
        pass
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_the_grace_time_runs_from_the_first_signal(interrupt: Interrupt) -> None:
    assert interrupt.left(2) == 2
    os.kill(os.getpid(), signal.SIGTERM)
    assert 1 < interrupt.left(2) <= 2
    assert interrupt.left(0) == 0


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT])
def test_a_signal_that_was_ignored_before_stays_ignored(
    own_signals: None, number: signal.Signals
) -> None:
    """``nohup`` ignores SIGHUP, and a script SIGINT for its commands in the background."""
    signal.signal(number, signal.SIG_IGN)
    interrupt = Interrupt()
    interrupt.install()
    os.kill(os.getpid(), number)
    assert not interrupt.requested
    os.kill(os.getpid(), signal.SIGTERM)
    assert interrupt.requested


def test_sigterm_ends_a_command_that_was_started_to_ignore_it(own_signals: None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    interrupt = Interrupt()
    interrupt.install()
    os.kill(os.getpid(), signal.SIGTERM)
    assert interrupt.requested
