"""Ends child processes: asks with SIGTERM, then makes sure with SIGKILL."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from typing import Any

_KILL_S = 3.0  # a killed process may still be in an uninterruptible system call


def stop(process: subprocess.Popen[Any], grace_s: float, *, group: bool = False) -> None:
    """Send SIGTERM, wait up to ``grace_s`` seconds, send SIGKILL, and reap the process.

    ``group`` signals the whole process group that the process leads.
    """
    _send(process, signal.SIGTERM, group)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(grace_s)
    # members of a group may outlive their leader
    if group or process.poll() is None:
        _send(process, signal.SIGKILL, group)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_KILL_S)


def _send(process: subprocess.Popen[Any], number: signal.Signals, group: bool) -> None:
    if not group:
        process.send_signal(number)
        return
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)
