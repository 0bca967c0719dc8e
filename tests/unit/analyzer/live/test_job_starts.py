"""New jobs: which subsystem a start suppresses, and what no start suppresses."""

from __future__ import annotations

from itertools import chain

import pytest

from reveal_analyzer.derive.deriver import Deriver
from reveal_analyzer.live.job_starts import NEW_CPU_S, NEW_S, JobStarts
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Kind, Lane, Subsystem
from support.synthetic_node import Node

OLD, NEW = "/train", "/loader"
HOST = (
    Channel("storage.pressure.some", "", Kind.COUNTER, 1e3),
    Channel("storage.disk.queue_time", "vda", Kind.COUNTER, 1e6),
)
READS = {f"storage.subject.read_bytes{{{NEW}}}": 4e7, f"storage.subject.read_bytes{{{OLD}}}": 2e6}
CALM = {"storage.pressure.some": 2e4, "storage.disk.queue_time{vda}": 160.0}
STORAGE = frozenset({Subsystem.STORAGE})


def reads(name: str) -> tuple[Channel, ...]:
    metrics = ("storage.subject.read_bytes", "storage.subject.reads", "cpu.subject.starts")
    return tuple(Channel(metric, name, Kind.COUNTER, 1.0, Lane.SLOW) for metric in metrics)


class Host:
    """Twenty seconds of an old subject, then what a test asks for."""

    def __init__(self, host: tuple[Channel, ...] = HOST) -> None:
        self.host = host
        self.node, self.deriver, self.newcomers = Node(), Deriver(), JobStarts()
        self.run(20, {}, OLD)

    def run(
        self, seconds: int, changed: dict[str, float], *subjects: str, missing: str = ""
    ) -> list[frozenset[Subsystem]]:
        self.node.table = ChannelTable(self.host, tuple(chain(*map(reads, subjects))))
        return [self._suppressed(changed, missing) for _ in range(seconds)]

    def _suppressed(self, changed: dict[str, float], missing: str) -> frozenset[Subsystem]:
        message, table = self.node.slice(changed), self.node.table
        message.fast_missing[:, [channel.metric == missing for channel in table.fast]] = True
        return self.newcomers.push(self.deriver.second(message, table))


def test_the_reads_of_a_new_job_are_suppressed_while_it_is_new() -> None:
    suppressed = Host().run(NEW_S + 10, READS | CALM, OLD, NEW)
    assert set(suppressed[:NEW_S]) == {STORAGE}
    assert not any(suppressed[NEW_S:])


def test_the_reads_of_a_container_that_starts_in_a_known_pod_are_suppressed() -> None:
    host = Host()
    host.run(NEW_S + 10, CALM, OLD, NEW)
    assert not any(host.run(5, READS | CALM, OLD, NEW))
    restart = READS | CALM | {f"cpu.subject.starts{{{NEW}}}": 1.0}
    assert host.run(1, restart, OLD, NEW) == [STORAGE]
    suppressed = host.run(NEW_S + 10, READS | CALM, OLD, NEW)
    assert set(suppressed[: NEW_S - 1]) == {STORAGE}
    assert not any(suppressed[NEW_S - 1 :])
    # a start in a subject that does not work excuses nobody
    other = READS | CALM | {f"cpu.subject.starts{{{OLD}}}": 1.0}
    assert not any(host.run(5, other, OLD, NEW))


def test_a_single_burst_of_the_start_has_no_lasting_effect() -> None:
    host = Host()
    burst = host.run(2, READS | CALM | {"storage.disk.queue_time{vda}": 2300.0}, OLD, NEW)
    assert not any(burst)
    assert host.run(3, READS | CALM, OLD, NEW)[-1] == STORAGE


def test_reads_of_single_pages_second_after_second_are_no_start() -> None:
    count, size = f"storage.subject.reads{{{NEW}}}", f"storage.subject.read_bytes{{{NEW}}}"
    # three hundred pages a second: what fio's random reads look like, and a data base's
    suppressed = Host().run(20, CALM | {count: 300.0, size: 300 * 4096.0}, OLD, NEW)
    assert suppressed[0] == STORAGE
    assert not any(suppressed[5:])
    # as many reads of files, and single pages now and then
    assert all(Host().run(20, CALM | {count: 300.0, size: 300 * 65536.0}, OLD, NEW))
    assert all(Host().run(20, CALM | {count: 30.0, size: 30 * 4096.0}, OLD, NEW))


def test_a_few_seconds_of_single_pages_belong_to_a_start() -> None:
    host = Host()
    count, size = f"storage.subject.reads{{{NEW}}}", f"storage.subject.read_bytes{{{NEW}}}"
    pages = CALM | {count: 300.0, size: 300 * 4096.0}
    assert all(host.run(2, pages, OLD, NEW) + host.run(10, READS | CALM, OLD, NEW))


@pytest.mark.parametrize(
    "harm",
    [
        {"storage.pressure.some": 3e5},
        {"storage.disk.queue_time{vda}": 20_000.0},  # asynchronous: no task waits
        {f"storage.subject.read_bytes{{{OLD}}}": 4e7},
    ],
    ids=["somebody waits", "the device is busy", "others do as much"],
)
def test_harm_or_the_work_of_others_is_not_suppressed(harm: dict[str, float]) -> None:
    assert not any(Host().run(20, READS | CALM | harm, OLD, NEW))


def test_subjects_that_were_there_from_the_beginning_are_not_new() -> None:
    host = Host()
    assert not any(host.run(10, READS | CALM, OLD))
    assert host.run(1, READS | CALM, OLD, NEW) == [STORAGE]


def test_without_pressure_files_nothing_is_suppressed() -> None:
    assert not any(Host(HOST[1:]).run(20, READS | CALM, OLD, NEW))


def test_pressure_that_is_not_read_suppresses_nothing() -> None:
    host = Host()
    assert host.run(3, READS | CALM, OLD, NEW)[-1] == STORAGE
    assert not any(host.run(10, READS | CALM, OLD, NEW, missing="storage.pressure.some")[3:])
    assert host.run(5, READS | CALM, OLD, NEW)[-1] == STORAGE


MEMORY_HOST = (
    Channel("memory.pressure.some", "", Kind.COUNTER, 1e3),
    Channel("memory.unevictable", "", Kind.GAUGE, 1024.0),
)


class FaultingHost(Host):
    """The subjects of ``Host`` touch memory instead of reading files."""

    def __init__(self) -> None:
        super().__init__(MEMORY_HOST)

    def run(
        self, seconds: int, changed: dict[str, float], *subjects: str, missing: str = ""
    ) -> list[frozenset[Subsystem]]:
        faults = tuple(
            Channel("memory.subject.page_faults", name, Kind.COUNTER, 1.0, Lane.SLOW)
            for name in subjects
        )
        self.node.table = ChannelTable(self.host, faults)
        return [self._suppressed(changed, missing) for _ in range(seconds)]


def test_a_start_that_locks_memory_is_not_suppressed() -> None:
    touched = {f"memory.subject.page_faults{{{NEW}}}": 3e4, "memory.pressure.some": 0.0}
    kib = {"memory.unevictable": 4096.0}
    host = FaultingHost()
    assert host.run(10, touched | kib, OLD, NEW)[-1] == {Subsystem.MEMORY}
    # a few buffers, then a gigabyte that stays
    assert host.run(5, touched | {"memory.unevictable": 4096.0 + 30 * 1024}, OLD, NEW)[-1]
    locked = {"memory.unevictable": 4096.0 + (1 << 20)}
    assert not any(host.run(10, touched | locked, OLD, NEW))
    assert host.run(2, touched | kib, OLD, NEW)[-1] == {Subsystem.MEMORY}


CPU = frozenset({Subsystem.CPU})
USAGE = {f"cpu.subject.usage{{{NEW}}}": 9e8, f"cpu.subject.usage{{{OLD}}}": 1e8}


class ComputingHost(Host):
    """A host whose subjects compute."""

    def __init__(self) -> None:
        super().__init__((Channel("cpu.pressure.some", "", Kind.COUNTER, 1e3),))

    def run(
        self, seconds: int, changed: dict[str, float], *subjects: str, missing: str = ""
    ) -> list[frozenset[Subsystem]]:
        usage = [Channel("cpu.subject.usage", name, Kind.COUNTER, 1.0) for name in subjects]
        self.node.table = ChannelTable(self.host, tuple(usage))
        return [self._suppressed(changed, missing) for _ in range(seconds)]


def test_what_a_new_job_computes_is_suppressed_for_a_shorter_time() -> None:
    """Imports and compilation take seconds of a CPU, and others wait a little for it."""
    suppressed = ComputingHost().run(
        NEW_S, USAGE | {"cpu.pressure.some": 5e4}, OLD, NEW
    )  # fmt: skip
    assert set(suppressed[:NEW_CPU_S]) == {CPU}
    assert not any(suppressed[NEW_CPU_S:])


def test_a_new_job_for_which_others_wait_is_not_suppressed() -> None:
    suppressed = ComputingHost().run(10, USAGE | {"cpu.pressure.some": 2e5}, OLD, NEW)
    assert not any(suppressed)


def test_the_computing_of_an_old_job_is_not_suppressed_by_a_start() -> None:
    old = {f"cpu.subject.usage{{{NEW}}}": 1e8, f"cpu.subject.usage{{{OLD}}}": 9e8}
    suppressed = ComputingHost().run(10, old | {"cpu.pressure.some": 5e4}, OLD, NEW)
    assert not any(suppressed)
