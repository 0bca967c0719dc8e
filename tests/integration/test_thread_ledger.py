"""The ledger from times of threads on the running kernel, without BPF programs."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from reveal_collector.kernel_interfaces.errors import LayoutChanged, Unsupported
from reveal_collector.ledger.thread_source import ThreadLedger
from reveal_collector.readers.source import Roots
from reveal_collector.subjects.cgroup_files import hierarchies
from reveal_collector.subjects.tracker import SubjectSelection, SubjectTracker
from reveal_contract import ledger
from reveal_contract.ledger import Tier, adds_up
from support.ledger_host import is_removed
from support.polling import wait_until

TREES = hierarchies(Roots().cgroup)
FOLDERS = [tree / f"reveal-thread-ledger-{os.getpid()}" for tree in TREES.values()]
SPIN = "while True: pass"

pytestmark = pytest.mark.skipif(
    os.getuid() != 0 or not TREES or not Path("/proc/self/schedstat").exists(),
    reason="needs root, cgroups and schedstat",
)


def source(is_counted: bool = False) -> ThreadLedger:
    tracker = SubjectTracker(TREES, SubjectSelection())
    return ThreadLedger(Roots(), tracker, lambda: is_counted)


def read(opened: ThreadLedger) -> dict[str, float]:
    try:
        values = opened.read()
    except LayoutChanged:
        values = opened.read()
    return {
        column.label: value * column.scale
        for column, value in zip(opened.channels, values, strict=True)
        if value is not None
    }


@pytest.fixture
def crowded_cpu() -> Iterator[str]:
    """Two processes in a cgroup on a CPU where two others run, too; its name."""

    def enter() -> None:
        for folder in FOLDERS:
            (folder / "cgroup.procs").write_text(str(os.getpid()))
        os.sched_setaffinity(0, {0})

    for folder in FOLDERS:
        folder.mkdir()
    command = [sys.executable, "-S", "-c", SPIN]
    inside = [subprocess.Popen(command, preexec_fn=enter) for _ in range(2)]  # noqa: PLW1509
    beside = [
        subprocess.Popen(command, preexec_fn=lambda: os.sched_setaffinity(0, {0}))  # noqa: PLW1509
        for _ in range(2)
    ]
    yield f"/{FOLDERS[0].name}"
    for process in (*inside, *beside):
        process.kill()
        process.wait()
    for folder in FOLDERS:
        wait_until(lambda folder=folder: is_removed(folder))


def test_waits_for_others_and_for_its_own_threads_are_separate(crowded_cpu: str) -> None:
    opened = source()
    opened.open()
    try:
        row: dict[str, float] = {}
        while row.get(f"ledger.thread_time{{{crowded_cpu}}}", 0.0) < 2e9:
            due = time.monotonic() + 1.0  # as a collector reads it
            wait_until(lambda due=due: time.monotonic() >= due)
            row = read(opened)
        assert row["ledger.tier"] == Tier.SCHEDSTAT
        found = {
            metric: row[f"{metric}{{{crowded_cpu}}}"]
            for metric in (*ledger.PARTS, ledger.THREAD_TIME)
        }
        assert adds_up(found)
        assert found[ledger.RUN] > 0.1e9
        assert found[ledger.WAIT_SELF] > 0.1e9
        assert found[ledger.WAIT_OTHERS] > 0.1e9
    finally:
        opened.close()


def test_where_bpf_programs_count_it_is_not_needed() -> None:
    with pytest.raises(Unsupported, match="not needed"):
        source(is_counted=True).open()
