"""Signals that a process was started to ignore, as ``nohup`` and shells do for background jobs.

``nohup`` ignores SIGHUP.  A shell without job control, such as that of a script, ignores SIGINT for
commands that it starts with ``&`` (POSIX, 2.11 Signals and Error Handling).  A handler would undo
that.
"""

from __future__ import annotations

import signal
from collections.abc import Iterable


def without_ignored(numbers: Iterable[signal.Signals]) -> tuple[signal.Signals, ...]:
    """Return the signals that this process does not ignore."""
    return tuple(each for each in numbers if signal.getsignal(each) is not signal.SIG_IGN)
