"""Fixtures of the unit tests."""

import signal
from collections.abc import Iterator

import pytest

from reveal_cli.interrupt import SIGNALS


@pytest.fixture
def own_signals() -> Iterator[None]:
    """The test may install handlers of its own; pytest's come back."""
    before = {number: signal.getsignal(number) for number in (*SIGNALS, signal.SIGALRM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
