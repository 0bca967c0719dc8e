"""Signals that stay ignored."""

import signal

import pytest

from reveal_contract.runtime.ignored_signals import without_ignored


@pytest.mark.parametrize("disposition", [signal.SIG_DFL, signal.default_int_handler])
def test_only_an_ignored_signal_is_left_out(disposition: signal.Handlers) -> None:
    before = signal.getsignal(signal.SIGINT)
    try:
        signal.signal(signal.SIGINT, disposition)
        assert without_ignored([signal.SIGTERM, signal.SIGINT]) == (signal.SIGTERM, signal.SIGINT)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        assert without_ignored([signal.SIGTERM, signal.SIGINT]) == (signal.SIGTERM,)
    finally:
        signal.signal(signal.SIGINT, before)
