"""Faults of a node on which something else is wrong all the time."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from reveal_analyzer.node import NodeAnalyzer
from reveal_contract import catalogue
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.finding import FindingChange, FindingUpdate
from reveal_contract.metric import Subsystem
from reveal_contract.settings import AnalyzerSettings
from support.heartbeat_nodes import JOB, HeartbeatNode, Job
from support.synthetic_node import FAST, TABLE, Node

QUIET_S, LASTS_S, PAUSE_S = 300, 300, 120
FIRST, SECOND = QUIET_S, QUIET_S + LASTS_S + PAUSE_S
Span = tuple[int, int]

_PENDING = catalogue.find("gpu.remapped_rows.pending")
GPU = ChannelTable(
    TABLE.fast, (*TABLE.slow, Channel(_PENDING.name, "0", _PENDING.kind, 1.0, _PENDING.lane))
)
WAITS_FOR_RESET = {"gpu.remapped_rows.pending{0}": 1.0}
FAULTS = {
    Subsystem.NETWORK: {"network.tcp.retrans_segs": 60.0, "network.tcp.out_segs": 3000.0},
    Subsystem.CPU: {
        "cpu.pressure.some": 600_000.0, "cpu.context_switches": 3000.0, "cpu.user": 60.0,
        "cpu.procs_running": 9.0,
    },
}  # fmt: skip


def spans(updates: Iterator[tuple[int, FindingUpdate]], subsystem: Subsystem) -> list[Span]:
    """Return when findings of a subsystem opened and resolved, in seconds."""
    opened: dict[str, int] = {}
    resolved: dict[str, int] = {}
    for second, update in updates:
        if update.finding.subsystem is not subsystem:
            continue
        if update.change is FindingChange.OPENED:
            opened[update.finding.id] = second
        if update.change is FindingChange.RESOLVED:
            resolved[update.finding.id] = second
    assert opened.keys() == resolved.keys()
    return [(opened[each], resolved[each]) for each in opened]


def is_on(second: int) -> bool:
    return FIRST <= second < FIRST + LASTS_S or SECOND <= second < SECOND + LASTS_S


def twice(
    fault: dict[str, float], lasting: dict[str, float], table: ChannelTable
) -> Iterator[tuple[int, FindingUpdate]]:
    """Yield the updates of a node with a fault that comes twice, and with one that lasts."""
    node, judge = Node(table), NodeAnalyzer("n1", AnalyzerSettings(warmup_seconds=60))
    for second in range(SECOND + LASTS_S + 60):
        values = lasting | (fault if is_on(second) else {})
        for update in judge.analyze(node.slice(values), node.table):
            yield second, update


def assert_found_twice(found: list[Span]) -> None:
    assert len(found) == 2
    for (opened, resolved), began in zip(found, (FIRST, SECOND), strict=True):
        assert began <= opened <= began + 8
        assert began + LASTS_S <= resolved <= began + LASTS_S + 25


@pytest.mark.slow
@pytest.mark.parametrize("subsystem", FAULTS)
@pytest.mark.parametrize("lasting", [{}, WAITS_FOR_RESET], ids=["control", "lasting"])
def test_a_signature_that_is_always_present_hides_no_fault_of_another_subsystem(
    subsystem: Subsystem, lasting: dict[str, float]
) -> None:
    updates = twice(FAULTS[subsystem], lasting, GPU)
    assert_found_twice(spans(updates, subsystem))


@pytest.mark.slow
@pytest.mark.parametrize("slower", [1.0, 1.15])
def test_a_job_that_is_slower_for_good_hides_no_packet_loss(slower: float) -> None:
    def factor(second: float) -> float:
        return slower if second >= 200 else 1.0

    others = tuple(channel for channel in FAST if "subject" not in channel.metric)
    job = Job(0.45, 0.2, 0.02, slower=factor)
    node = HeartbeatNode({JOB: job}, SECOND + LASTS_S + 60, others=others)
    judge = NodeAnalyzer("n1", AnalyzerSettings(warmup_seconds=60))
    assert_found_twice(spans(_analyzed(judge, node, _with_loss), Subsystem.NETWORK))


_QUIET = {
    "cpu.user{0}": 2.0, "cpu.user{1}": 1.0, "cpu.user": 3.0, "cpu.pressure.some": 200.0,
    "cpu.procs_running": 1.0, "cpu.context_switches": 30.0, "memory.mem_total": 16 << 20,
    "memory.mem_available": 12 << 20, "network.tcp.out_segs": 50.0,
}  # fmt: skip


def _with_loss(second: int) -> dict[str, float]:
    return _QUIET | (FAULTS[Subsystem.NETWORK] if is_on(second) else {})


def _analyzed(
    judge: NodeAnalyzer, node: HeartbeatNode, values: Callable[[int], dict[str, float]]
) -> Iterator[tuple[int, FindingUpdate]]:
    for second, message in enumerate(node.slices(values)):
        for update in judge.analyze(message, node.table):
            yield second, update
