"""A process whose thread ended by a defect ends, and its log says why."""

from __future__ import annotations

import subprocess
import sys

from reveal_contract.runtime.thread_defects import EXIT_STATUS

_PROGRAM = """
import threading, time
from reveal_contract.runtime import logs, thread_defects
logs.set_up("json")
thread_defects.end_on_defects()
def work():
    {body}
threading.Thread(target=work, name="worker").start()
time.sleep({seconds})
"""


def ran(body: str, seconds: float = 0.0) -> subprocess.CompletedProcess[str]:
    program = _PROGRAM.format(body=body, seconds=seconds)
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )


def test_a_defect_of_a_thread_ends_the_process() -> None:
    ended = ran("raise KeyError('lost')", seconds=60.0)
    assert ended.returncode == EXIT_STATUS
    assert "a defect ended thread worker" in ended.stderr
    assert "KeyError: 'lost'" in ended.stderr


def test_a_thread_that_ends_by_itself_ends_nothing() -> None:
    for body in ("pass", "raise SystemExit"):
        assert ran(body).returncode == 0
