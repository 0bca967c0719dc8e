"""Runs a program, and all that it starts, on a clock that is faster than the real one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

SPEED = "REVEAL_SPEED"  # in the environment of processes whose clock is faster
_WAITS = Path(__file__).with_name("sem_clockwait.c")


def is_simulated() -> bool:
    """Whether the clock of this process is faster."""
    return SPEED in os.environ


def run(speed: float, program: Path, arguments: Sequence[str]) -> int:
    """Run a Python program ``speed`` times as fast; return its exit code, 2 without libfaketime."""
    faketime = shutil.which("faketime")
    if faketime is None:
        sys.stderr.write("no faketime on PATH (Debian, Ubuntu: apt install faketime)\n")
        return 2
    with tempfile.TemporaryDirectory() as folder:
        waits = Path(folder) / "sem_clockwait.so"
        compiler = os.environ.get("CC", "cc")
        subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", waits, _WAITS], check=True)
        command = [faketime, "-m", "-f", f"+0 x{speed:g}", sys.executable, program, *arguments]
        environment = {**os.environ, SPEED: str(speed), "LD_PRELOAD": str(waits)}
        return subprocess.run(command, env=environment, check=False).returncode
