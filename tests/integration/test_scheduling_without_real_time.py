"""Threads whose cgroup has no real time, or whose process may not have it, on this kernel."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from reveal_collector.native import load

CPU = Path("/sys/fs/cgroup/cpu")
# which of all threads is at which nice value is field 19 of its stat (proc(5))
PROGRAM = """
import os, threading
from reveal_collector.native.scanner import NativePlan, RowLayout, Ticker
from reveal_collector.kernel_interfaces.scheduling import prefer_real_time
ticker = Ticker(NativePlan([], RowLayout(0, 0, 0, 5, 8)), 0, 100_000_000)
def nice(thread):
    with open(f"/proc/self/task/{thread}/stat") as file:
        return int(file.read().rpartition(")")[2].split()[16])
values = sorted(nice(thread) for thread in os.listdir("/proc/self/task"))
print(ticker.not_real_time, values[0], sep="|")
print(prefer_real_time(), os.getpriority(os.PRIO_PROCESS, 0), sep="|")
ticker.stop()
ticker.close()
"""

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="cgroups and capabilities need root"),
    pytest.mark.skipif(load().library is None, reason=load().unavailable or "there is a library"),
]


@pytest.fixture
def no_real_time() -> Iterator[Path]:
    if not (CPU / "cpu.rt_runtime_us").exists():
        pytest.skip("this kernel gives every cgroup real time")
    cgroup = CPU / f"reveal-test-{os.getpid()}"
    cgroup.mkdir()
    assert (cgroup / "cpu.rt_runtime_us").read_text().strip() == "0"
    yield cgroup
    cgroup.rmdir()


def lines(*before: str) -> list[list[str]]:
    command = (*before, sys.executable, "-c", PROGRAM)
    result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
    return [line.split("|") for line in result.stdout.splitlines()]


def test_a_cgroup_without_real_time_leaves_the_highest_nice_value(
    no_real_time: Path,
) -> None:
    enter = f'echo $$ > {no_real_time}/cgroup.procs; exec "$@"'
    for message, nice in lines("sh", "-c", enter, "sh"):
        assert "cpu.rt_runtime_us" in message
        assert nice == "-20"


def test_without_the_capability_the_message_names_it() -> None:
    for message, nice in lines("setpriv", "--bounding-set=-sys_nice", "--inh-caps=-sys_nice"):
        assert "grant CAP_SYS_NICE" in message
        assert nice == "0"
