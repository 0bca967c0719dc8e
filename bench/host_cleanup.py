"""For benches that change the host: progress on stderr, and signals that let all be undone."""

from __future__ import annotations

import signal
import sys

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def log(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def interruptible() -> None:
    """From now on the first signal to end is a KeyboardInterrupt, and further ones are ignored."""
    for number in _SIGNALS:
        signal.signal(number, _interrupt)


def _interrupt(number: int, frame: object) -> None:
    for each in _SIGNALS:
        signal.signal(each, signal.SIG_IGN)  # undoing is not to be interrupted again
    raise KeyboardInterrupt
