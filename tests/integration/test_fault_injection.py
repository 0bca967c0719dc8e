"""Real faults on the real kernel, one second each: they act, and nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from reveal_cli.faults import Fault, FaultTarget, Injection, Ledger, LedgerError, find, sweep
from reveal_cli.faults.cgroups import leftovers
from reveal_cli.faults.ledger import state_directory
from reveal_cli.workloads import Workload, WorkloadError
from support import polling

# a program is read from disk again on a host that is short of memory
wait_until = partial(polling.wait_until, seconds=60)
ROOT = pytest.mark.skipif(os.getuid() != 0, reason="needs root")


@pytest.fixture(autouse=True)
def alone() -> None:
    """Faults of another run on this host would be taken for ours."""
    try:
        Ledger("faults").close()
    except LedgerError as error:
        pytest.skip(str(error))


def _usable(name: str, scratch: Path) -> Fault:
    fault = find(name)
    if why := fault.unsupported_reason(FaultTarget(scratch=scratch)):
        pytest.skip(f"{name}: {why}")
    return fault


def _value(file: str, key: str) -> int:
    rows = (line.split() for line in Path(file).read_text().splitlines())
    return next(int(row[1]) for row in rows if row[0].rstrip(":") == key)


def _nothing_left() -> bool:
    return not leftovers("reveal-fault-") and not list(state_directory().glob("faults.*"))


@pytest.mark.root
@ROOT
@pytest.mark.parametrize(
    ("name", "file", "key", "atleast"),
    [
        ("ctxt_storm", "/proc/stat", "ctxt", 5000),
        ("oom_kill", "/proc/vmstat", "oom_kill", 1),
        ("hugepages_weak", "/proc/meminfo", "HugePages_Total", 1),
    ],
)
def test_a_fault_moves_its_counter_and_cleans_up(
    name: str, file: str, key: str, atleast: int, tmp_path: Path
) -> None:
    fault = _usable(name, tmp_path)
    reserved = Path("/proc/sys/vm/nr_hugepages").read_text()
    before = _value(file, key)
    with fault.on(FaultTarget(scratch=tmp_path)) as injection:
        wait_until(lambda: injection.failure() or _value(file, key) >= before + atleast, key)
        assert not injection.failure()
        expected = None if name == "hugepages_weak" else f"/reveal-fault-{name}"
        assert injection.subject == expected
    injection.stop()
    assert _nothing_left()
    assert Path("/proc/sys/vm/nr_hugepages").read_text() == reserved


_INJECT = """
import sys, time
from pathlib import Path
from reveal_cli.faults import FaultTarget, find
find(sys.argv[1]).on(FaultTarget(scratch=Path(sys.argv[2]))).start()
print("injected", flush=True)
time.sleep(60)
"""


@pytest.mark.root
@ROOT
def test_leftovers_of_a_killed_run_are_removed(tmp_path: Path) -> None:
    _usable("hugepages_weak", tmp_path)
    reserved = Path("/proc/sys/vm/nr_hugepages").read_text()
    command = [sys.executable, "-c", _INJECT, "hugepages_weak", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"injected\n"
        process.send_signal(signal.SIGKILL)
    assert Path("/proc/sys/vm/nr_hugepages").read_text() != reserved
    sweep()
    assert Path("/proc/sys/vm/nr_hugepages").read_text() == reserved
    assert _nothing_left()


def test_a_program_that_fails_is_reported_with_its_last_line(tmp_path: Path) -> None:
    def inject(injection: Injection) -> None:
        injection.program("spin", "many")

    fault = replace(_usable("ctxt_weak", tmp_path), inject=inject)
    with fault.on(FaultTarget(scratch=tmp_path)) as injection:
        wait_until(injection.failure)
        assert injection.failure() == (
            "ctxt_weak: one of its programs ended with status 1: "
            "ValueError: invalid literal for int() with base 10: 'many'"
        )
    assert not injection.failure()


def test_an_exception_ends_the_processes(tmp_path: Path) -> None:
    fault = _usable("ctxt_weak", tmp_path)
    pids = []
    with pytest.raises(ZeroDivisionError), fault.on(FaultTarget(scratch=tmp_path)) as injection:
        pids = [process.pid for process in injection._processes]
        raise ZeroDivisionError
    assert pids
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    assert _nothing_left()


def test_a_workload_runs_and_cleans_up(tmp_path: Path) -> None:
    log = tmp_path / "log"
    try:
        with Workload("train", tmp_path, log) as job:
            wait_until(lambda: log.exists() and b'"step"' in log.read_bytes())
            assert job.alive
            target, subject = job.target, job.subject
    except WorkloadError as error:
        if "another run" in str(error):
            pytest.skip(str(error))
        raise
    if os.getuid() == 0:
        assert target.workload is not None
        assert subject == target.workload.path == "/reveal-work-train"
        assert not leftovers("reveal-work-train")
    else:
        assert subject.startswith("pgrp:")
    assert [path.name for path in tmp_path.iterdir()] == ["log"]
