"""Stopping child processes: asked first, killed when they do not end."""

import signal
import subprocess
import sys
import time

import pytest

from reveal_cli import child_process

STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
READY_AND_SLEEP = "print('ready', flush=True); import time; time.sleep(60)"


def started(program: str) -> "subprocess.Popen[str]":
    """Return a process that has installed its handlers."""
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize(
    ("program", "number"),
    [(READY_AND_SLEEP, signal.SIGTERM), (STUBBORN + READY_AND_SLEEP, signal.SIGKILL)],
)
def test_a_process_is_asked_and_then_killed(program: str, number: signal.Signals) -> None:
    process = started(program)
    child_process.stop(process, 0.3)
    assert process.returncode == -number
    child_process.stop(process, 0.3)  # a second call does nothing


def test_a_group_is_stopped_with_the_members_that_outlive_its_leader() -> None:
    member = STUBBORN + READY_AND_SLEEP
    leader = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {member!r}])"
    process = started(leader)
    assert process.stdout is not None
    child_process.stop(process, 0.3, group=True)
    begin = time.monotonic()
    assert process.stdout.read() == ""  # the pipe closes when the last member has ended
    assert time.monotonic() - begin < 10
