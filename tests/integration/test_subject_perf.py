"""Perf events by cgroup on this kernel, against the CPU time of the process they count."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from reveal_collector.kernel_interfaces.errors import Unsupported
from reveal_collector.readers.source import Roots
from reveal_collector.subjects.perf import SubjectEvents
from reveal_collector.subjects.tracker import SubjectSelection, SubjectTracker

ROOT = Path("/sys/fs/cgroup")
TREE = next((item for item in (ROOT, ROOT / "unified") if (item / "cgroup.procs").exists()), None)
FOLDER = "reveal-test-events"
WORK = """
import sys, time
end = time.process_time() + 0.4
while time.process_time() < end:
    pass
print("done", flush=True)
sys.stdin.read()
"""

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
    pytest.mark.skipif(TREE is None, reason="no cgroup version 2 hierarchy"),
]


@pytest.fixture
def cgroup() -> Iterator[Path]:
    assert TREE is not None
    folder = TREE / FOLDER
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        pytest.skip(f"no cgroup may be made here: {error.strerror}")
    yield folder
    folder.rmdir()


def test_task_clock_is_the_cpu_time_of_the_cgroup(cgroup: Path) -> None:
    tracker = SubjectTracker({"unified": cgroup.parent}, SubjectSelection())
    tracker._users = 1
    tracker.update(0.0)
    source = SubjectEvents(Roots(), tracker)
    try:
        source.open()
    except Unsupported as missing:
        pytest.skip(missing.reason)
    worker = subprocess.Popen(
        [sys.executable, "-c", WORK], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert worker.stdin
        assert worker.stdout
        (cgroup / "cgroup.procs").write_text(str(worker.pid))
        worker.stdout.readline()
        time.sleep(0.05)
        read = dict(zip((channel.label for channel in source.channels), source.read(), strict=True))
        worker.stdin.close()
        worker.wait()
    finally:
        worker.kill()
        source.close()
    clock = read[f"cpu.subject.task_clock{{/{FOLDER}}}"]
    assert clock is not None
    assert 0.3e9 < clock < 0.8e9  # its start is another cgroup's
    assert (read[f"cpu.subject.context_switches{{/{FOLDER}}}"] or 0) > 0


def test_a_removed_cgroup_drops_only_its_own_columns(cgroup: Path) -> None:
    inner = cgroup / "inner"
    inner.mkdir()
    tracker = SubjectTracker({"unified": cgroup.parent}, SubjectSelection())
    tracker._users = 1
    tracker.update(0.0)
    inner.rmdir()
    source = SubjectEvents(Roots(), tracker)
    try:
        source.open()
    except Unsupported as missing:
        pytest.skip(missing.reason)
    try:
        assert f"/{FOLDER}/inner" not in {channel.instance for channel in source.channels}
        assert len(source.read()) == len(source.channels)
    finally:
        source.close()
