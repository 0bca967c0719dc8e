"""Run and wait times of threads from recorded trees of files, and what a subject lost by them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from reveal_collector.ledger.accounts import METRICS
from reveal_collector.ledger.thread_source import ThreadInterval
from reveal_collector.ledger.thread_times import SubjectTimes, ThreadTimes
from reveal_contract import ledger
from reveal_contract.ledger import adds_up
from support.ledger_maps import SECOND, slot

MS = SECOND // 1000
PID = os.getpid()  # its affinity is asked for


class Host:
    """A cgroup of version 2 with this process in it, whose threads are files."""

    def __init__(self, folder: Path) -> None:
        self.proc, self.tree = folder / "proc", folder / "cgroup"
        self.cgroup = self.tree / "job"
        (self.cgroup / "inner").mkdir(parents=True)
        (self.cgroup / "cgroup.procs").write_text("0\n999999999\n")
        (self.cgroup / "inner/cgroup.procs").write_text(f"{PID}\n")
        self.times = SubjectTimes({"unified": self.tree}, self.proc, "/job")

    def thread(self, tid: int, waited: int) -> None:
        folder = self.proc / f"{PID}/task/{tid}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "schedstat").write_text(f"123 {waited} 4\n")

    def end(self, tid: int) -> None:
        (self.proc / f"{PID}/task/{tid}/schedstat").unlink()

    def used(self, microseconds: int, throttled: int = 0) -> None:
        text = f"usage_usec {microseconds}\nnr_throttled 3\nthrottled_usec {throttled}\n"
        (self.cgroup / "cpu.stat").write_text(text)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_waits_are_those_of_all_threads_since_the_last_pass(host: Host) -> None:
    host.thread(1, 5 * SECOND)
    host.thread(2, 0)
    host.used(1_000_000)
    assert host.times.advance(SECOND) is None
    host.thread(1, 5 * SECOND + 300 * MS)
    host.thread(2, 100 * MS)
    host.thread(3, 50 * MS)  # started since then
    host.used(1_600_000, throttled=70_000)
    found = host.times.advance(SECOND)
    cpus = len(os.sched_getaffinity(0))
    assert found == ThreadTimes(600 * MS, 450 * MS, 70 * MS, cpus)
    assert host.times.threads == 3


def test_a_thread_that_came_from_elsewhere_waited_no_longer_than_the_time_since_then(
    host: Host,
) -> None:
    host.thread(1, 0)
    host.used(0)
    host.times.advance(SECOND)
    host.thread(9, 3_600 * SECOND)
    found = host.times.advance(SECOND)
    assert found is not None
    assert found.waited == SECOND


def test_threads_that_end_and_files_without_numbers_take_nothing_away(host: Host) -> None:
    host.thread(1, 7 * SECOND)
    host.thread(2, 7 * SECOND)
    host.used(10)
    host.times.advance(SECOND)
    host.end(1)
    host.thread(2, 7 * SECOND + 1)
    (host.cgroup / "cpu.stat").write_text("nr_throttled many\n")
    found = host.times.advance(SECOND)
    assert found is not None
    assert (found.ran, found.waited, found.throttled) == (0, 1, 0)


def test_a_subject_whose_threads_are_hidden_has_no_account(host: Host) -> None:
    host.used(1_000)
    host.times.advance(SECOND)
    assert host.times.advance(SECOND) is None


JOB = slot("job", 0)


def counters(times: ThreadTimes) -> dict[str, float]:
    interval = ThreadInterval(SECOND, {"job": times})
    return dict(zip(METRICS, map(float, interval.counters(JOB)), strict=True))


def test_parts_add_up_and_what_was_waited_for_is_lost() -> None:
    found = counters(ThreadTimes(600 * MS, 300 * MS, 100 * MS, 4))
    assert adds_up(found)
    assert found[ledger.WAIT_OTHERS] == 300 * MS
    assert found[ledger.THROTTLED] == 100 * MS


def test_more_threads_than_cpus_wait_for_each_other() -> None:
    """Six jobs of a build on two CPUs that nobody else uses."""
    found = counters(ThreadTimes(2 * SECOND, 4 * SECOND, 0, 2))
    assert (found[ledger.WAIT_OTHERS], found[ledger.WAIT_SELF]) == (0, 4 * SECOND)


def test_a_subject_that_was_not_followed_has_zeros() -> None:
    interval = ThreadInterval(SECOND, {})
    assert not any(interval.counters(JOB))
    assert (interval.desired_cpus(JOB), interval.pairs(JOB)) == (0, {})
