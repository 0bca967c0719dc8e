"""The minute of a node: robust levels of every metric of the node, and means of subjects."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np
import pytest

from reveal_analyzer.derive.columns import shared_column_plan
from reveal_analyzer.derive.deriver import Deriver
from reveal_analyzer.fleet.measures import Fold, Quanta, fold, measure
from reveal_analyzer.fleet.minute import (
    MinuteData,
    MinuteLayout,
    MinuteLevels,
    MinutePart,
    MinuteRecorder,
)
from reveal_analyzer.fleet.publisher import UNKNOWN, NodeSetup, summarize
from reveal_analyzer.heartbeat.findings import JobMonitor
from reveal_analyzer.heartbeat.reference import WindowReading
from reveal_analyzer.heartbeat.tracker import StepTime
from reveal_analyzer.node import NodeAnalyzer
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Kind, Lane
from reveal_contract.settings import AnalyzerSettings
from reveal_contract.wire import Message
from support.synthetic_node import OTHER, TABLE, WORK, Node

START = 1_700_000_040 * 10**9  # the start of a minute
GIB = 1 << 30
DISKS = ChannelTable(
    (
        Channel("storage.disk.reads", "sda", Kind.COUNTER),
        Channel("storage.disk.reads", "sdb", Kind.COUNTER),
        Channel("storage.disk.in_flight", "sda"),
        Channel("storage.disk.in_flight", "sdb"),
        Channel("memory.ecc.correctable", "mc0", Kind.COUNTER),
        Channel("cpu.subject.usage", "/a", Kind.COUNTER),
    ),
    (
        Channel("gpu.pcie.width", "0", Kind.STATE, lane=Lane.SLOW),
        Channel("gpu.pcie.width", "1", Kind.STATE, lane=Lane.SLOW),
        Channel("memory.hugepages.free", "2048kB", lane=Lane.SLOW),
        Channel("memory.hugepages.free", "1048576kB", lane=Lane.SLOW),
        Channel("memory.hugepages.reserved", "2048kB", lane=Lane.SLOW),
    ),
)
PARTS = {
    "storage.disk.reads{sda}": 100.0, "storage.disk.reads{sdb}": 300.0,
    "storage.disk.in_flight{sda}": 2.0, "storage.disk.in_flight{sdb}": 5.0,
    "gpu.pcie.width{0}": 16.0, "gpu.pcie.width{1}": 8.0,
    "memory.hugepages.free{2048kB}": 3.0 * GIB, "memory.hugepages.free{1048576kB}": 2.0 * GIB,
    "memory.hugepages.reserved{2048kB}": 1.0 * GIB, "cpu.subject.usage{/a}": 5e8,
}  # fmt: skip

MEANS = ("memory.ecc.correctable", "memory.hugepages.free")  # an event; less the reserved pages


class MinuteDriver:
    """Slices of one node pushed into its minutes."""

    def __init__(self, table: ChannelTable = TABLE) -> None:
        self.minutes, self._deriver = MinuteRecorder(), Deriver()
        self.node, self.table, self._second = Node(table), table, 0

    def second(self, **changed: float) -> None:
        self.push(self.node.slice(changed))

    def push(self, message: Message) -> None:
        start_ns = START + self._second * 10**9
        second = self._deriver.second(replace(message, start_ns=start_ns), self.table)
        self._second += 1
        self.minutes.push(second)

    def minute(self) -> MinuteLevels:
        ended = self.minutes.pop_ended()
        assert ended is not None
        return ended.levels()


def level(levels: MinuteLevels, name: str) -> float:
    return float(levels.levels[levels.names.index(name)])


def parts(seconds: int = 61) -> MinuteLevels:
    driver = MinuteDriver(DISKS)
    for _ in range(seconds):
        driver.second(**PARTS)
    return driver.minute()


def test_a_minute_ends_with_the_first_second_of_the_next_and_is_taken_once() -> None:
    driver = MinuteDriver()
    for _ in range(60):
        driver.second()
    assert driver.minutes.pop_ended() is None
    driver.second()
    levels = driver.minute()
    assert (levels.minute, levels.seconds) == (START // (60 * 10**9), 60)
    assert driver.minutes.pop_ended() is None


def test_what_bursts_for_a_second_is_no_level_and_what_lasts_is() -> None:
    driver = MinuteDriver()
    for second in range(61):
        driver.second(**{"cpu.pressure.some": 5e5 if second == 30 else 2000.0})
    levels = driver.minute()
    index = levels.names.index("cpu.pressure.some")
    assert levels.levels[index] == pytest.approx(2000 * 1e3, rel=0.05)
    assert levels.spreads[index] < 0.05 * levels.levels[index]


def test_additive_metrics_are_summed_and_others_take_the_worst_part() -> None:
    levels = parts()
    assert level(levels, "storage.disk.reads") == pytest.approx(400, rel=0.05)
    assert level(levels, "storage.disk.in_flight") == pytest.approx(7, rel=0.3)
    assert level(levels, "gpu.pcie.width") == 8


def test_pages_that_a_program_was_promised_are_not_idle() -> None:
    assert level(parts(), "memory.hugepages.free") == 4 * GIB


def test_meminfo_alone_gives_pages_of_the_default_size() -> None:
    pages = [Channel(f"memory.huge_pages_{name}") for name in ("total", "free", "rsvd")]
    meminfo = ChannelTable((*pages, Channel("memory.hugepagesize", scale=1024.0)), ())
    driver = MinuteDriver(meminfo)
    for _ in range(61):
        message = driver.node.slice()
        driver.push(replace(message, fast=np.tile(np.array([1024, 512, 12, 2048]), (10, 1))))
    assert level(driver.minute(), "memory.hugepages.free") == 500 * 2048 * 1024


def test_events_are_means_as_a_single_event_in_a_minute_counts() -> None:
    driver = MinuteDriver(DISKS)
    for second in range(61):
        driver.second(**PARTS, **{"memory.ecc.correctable{mc0}": 10.0 if second == 30 else 0.0})
    assert 0 < level(driver.minute(), "memory.ecc.correctable") < 1


def test_a_value_that_cannot_be_read_is_missing() -> None:
    driver = MinuteDriver(DISKS)
    for _ in range(61):
        message = driver.node.slice(PARTS)
        missing = message.fast_missing.copy()
        missing[:, 1] = True
        driver.push(replace(message, fast_missing=missing))
    levels = driver.minute()
    assert math.isnan(level(levels, "storage.disk.reads"))
    assert level(levels, "gpu.pcie.width") == 8


SUBJECT = ChannelTable(
    (Channel("cpu.subject.usage", "/a", Kind.COUNTER),),
    (Channel("storage.subject.read_bytes", "/a", Kind.COUNTER, lane=Lane.SLOW),),
)
READS, USED = ("storage.subject.read_bytes", "/a"), ("cpu.subject.usage", "/a")


def subject_levels(unread: Collection[int]) -> Mapping[tuple[str, str], float]:
    """Return the levels of a subject whose reads are missing in some seconds of a minute."""
    driver = MinuteDriver(SUBJECT)
    for second in range(61):
        values = {"cpu.subject.usage{/a}": 5e8, "storage.subject.read_bytes{/a}": 1e8}
        message = driver.node.slice(values)
        driver.push(replace(message, slow_missing=np.array([second in unread])))
    return driver.minute().subjects


@pytest.mark.parametrize(
    "unread", [(7,), (2, 7, 12), (2, 17, 32, 47), range(2, 60, 5), range(0, 58, 2), range(29)]
)
def test_seconds_that_were_not_read_make_no_subject_slower(unread: Collection[int]) -> None:
    known, whole = subject_levels(unread), subject_levels(())
    assert known[READS] == pytest.approx(whole[READS], rel=0.03)
    assert known[USED] == pytest.approx(whole[USED], rel=0.03)


def test_a_subject_that_was_hardly_read_has_no_level() -> None:
    known = subject_levels(range(31))
    assert READS not in known
    assert USED in known


def test_a_missing_second_costs_no_events() -> None:
    driver = MinuteDriver(DISKS)
    for second in range(61):
        message = driver.node.slice({**PARTS, "memory.ecc.correctable{mc0}": 10.0})
        missing = message.fast_missing.copy()
        missing[:, 4] = second == 30
        driver.push(replace(message, fast_missing=missing))
    assert level(driver.minute(), "memory.ecc.correctable") == pytest.approx(10, rel=0.2)


def node_levels(unread: Collection[int], *columns: int) -> MinuteLevels:
    """Return the levels of a node that could not read these columns in some seconds."""
    driver = MinuteDriver(DISKS)
    for second in range(61):
        message = driver.node.slice({**PARTS, "memory.ecc.correctable{mc0}": 10.0})
        missing = message.fast_missing.copy()
        missing[:, columns] = second in unread
        driver.push(replace(message, fast_missing=missing))
    return driver.minute()


@pytest.mark.parametrize("unread", [(7,), (2, 17, 32, 47), range(2, 60, 5), range(0, 58, 3)])
def test_a_missing_second_does_not_make_its_block_missing(unread: Collection[int]) -> None:
    columns = (0, 1, 4)  # the reads of both disks, and an event
    known, whole = node_levels(unread, *columns), node_levels((), *columns)
    for name in ("storage.disk.reads", "memory.ecc.correctable"):
        assert level(known, name) == pytest.approx(level(whole, name), rel=0.05)


def test_a_metric_that_was_hardly_read_has_no_level() -> None:
    unread = [second for second in range(60) if second % 5]
    assert math.isnan(level(node_levels(unread, 1), "storage.disk.reads"))


def test_activity_that_was_not_read_is_missing_in_the_summary_and_not_insignificant() -> None:
    summary = summarize("n", node_levels(range(60), 1), UNKNOWN, ())
    assert math.isnan(summary.activity["storage.disk.reads"])


@pytest.mark.parametrize("missing", [0.0, 0.4])
@pytest.mark.parametrize("blocks", [1, 2, 11, 12])
def test_levels_and_spreads_are_quantiles_of_what_is_there(blocks: int, missing: float) -> None:
    layout, random = MinuteLayout(shared_column_plan(DISKS)), np.random.default_rng(blocks)
    sums = random.lognormal(sigma=3.0, size=(blocks, len(layout.plan.columns)))
    gone = random.random(sums.shape) < missing
    gone[0] = False
    sums[gone] = np.nan
    part = MinutePart(layout, list(sums), [5] * blocks)
    levels, rows = MinuteData(1, [part]).levels(), part.blocks()
    assert rows.shape == (blocks, len(layout.names))
    robust = [index for index, name in enumerate(layout.names) if name not in MEANS]
    low, middle, high = np.nanquantile(rows[:, robust], (0.25, 0.5, 0.75), axis=0)
    np.testing.assert_allclose(levels.levels[robust], middle)
    np.testing.assert_allclose(levels.spreads[robust], (high - low) / 1.349, atol=1e-12)


def test_subjects_are_means_of_the_seconds_they_were_there() -> None:
    driver = MinuteDriver()
    for second in range(61):
        driver.second(**{f"cpu.subject.usage{{{WORK}}}": 3e8 if second < 30 else 0.0})
    assert driver.minute().subjects["cpu.subject.usage", WORK] == pytest.approx(1.5e8, rel=0.05)


def test_a_table_that_changes_within_the_minute_changes_no_level() -> None:
    driver = MinuteDriver()
    more = ChannelTable(
        (*TABLE.fast, Channel("cpu.subject.usage", "/new", Kind.COUNTER)), TABLE.slow
    )
    for second in range(61):
        if second == 33:
            driver.table, driver.node = more, Node(more)
        driver.second(**{"cpu.subject.usage{/new}": 1e8})
    levels = driver.minute()
    assert levels.seconds == 60
    assert level(levels, "cpu.pressure.some") == pytest.approx(2e6, rel=0.05)
    assert levels.subjects["cpu.subject.usage", "/new"] == pytest.approx(1e8, rel=0.05)
    assert np.isfinite(levels.levels).sum() > 8


def test_the_worst_of_a_metric_that_falls_is_its_least() -> None:
    assert fold("gpu.pcie.width") is Fold.LEAST
    assert fold("cpu.pressure.some") is Fold.TOTAL
    assert fold("cpu.user") is Fold.LARGEST
    assert measure("network.nic.speed").sign == 0  # type: ignore[union-attr]
    assert measure("no.such.metric") is None


def test_a_summary_has_all_harm_and_the_relevant_activity() -> None:
    driver = MinuteDriver(DISKS)
    for _ in range(61):
        driver.second(**PARTS)
    levels = driver.minute()
    summary = summarize("n", levels, NodeSetup("kind", {"cpu.smt": "on"}), ())
    assert {"storage.disk.in_flight", "gpu.pcie.width", "memory.hugepages.free"} <= set(
        summary.names
    )
    assert summary.level("memory.ecc.correctable") == 0.0
    assert summary.activity["storage.disk.reads"] == pytest.approx(400, rel=0.05)
    quiet = replace(levels, levels=np.where(levels.levels > 300, 4.0, levels.levels))
    assert "storage.disk.reads" not in summarize("n", quiet, UNKNOWN, ()).activity
    assert (summary.kind, summary.facts, summary.workload) == (
        "kind",
        {"cpu.smt": "on"},
        ("/a x 1",),
    )
    assert summary.jobs["/a"].levels == {"cpu.subject.usage": pytest.approx(5e8, rel=0.05)}


def test_what_matters_grows_with_the_memory_of_the_node() -> None:
    driver = MinuteDriver()
    for _ in range(61):
        driver.second()
    levels = driver.minute()
    level = levels.names.index("memory.mem_available")
    assert summarize("n", levels, UNKNOWN, ()).names.index("memory.mem_available") >= 0
    assert "memory.mem_total" in summarize("n", levels, UNKNOWN, ()).activity
    assert levels.levels[level] == pytest.approx(12 * GIB, rel=0.05)
    available, pressure = (measure(name) for name in ("memory.mem_available", "cpu.pressure.some"))
    assert available is not None
    assert pressure is not None
    quanta = Quanta.of([available, pressure])
    np.testing.assert_allclose(quanta.scaled(64.0 * GIB, 8), [64 * GIB / 512, pressure.row.quantum])


def test_the_steps_of_jobs_are_those_of_the_end_of_the_minute() -> None:
    driver = MinuteDriver()
    driver.minutes = MinuteRecorder(lambda: {WORK: 1.5})
    for _ in range(61):
        driver.second()
    levels = driver.minute()
    assert levels.subjects["job.step", WORK] == 1.5e9
    summary = summarize("n", levels, UNKNOWN, ())
    assert summary.jobs[WORK].levels["job.step"] == 1.5e9


def test_a_node_analysis_reports_the_steps_of_its_heartbeat(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reading = WindowReading(window=30, percent=4.7, scatter=0.5, level=2.0)
    learning = StepTime(0.4, 0.4, "cpu", 1.0)  # its reference is not known yet
    step_times = {WORK: StepTime(1.57, 1.5, "cpu", 1.0, (reading,)), OTHER: learning}
    monkeypatch.setattr(JobMonitor, "step_times", property(lambda self: step_times))
    node, engine = Node(), NodeAnalyzer("n1", AnalyzerSettings(), rules=())
    for second in range(61):
        engine.analyze(replace(node.slice(), start_ns=START + second * 10**9), TABLE)
    ended = engine.minutes.pop_ended()
    assert ended is not None
    subjects = ended.levels().subjects
    assert subjects["job.step", WORK] == 1.57e9
    assert ("job.step", OTHER) not in subjects
