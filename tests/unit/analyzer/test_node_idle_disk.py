"""The first requests to an unused disk are new, but no harm."""

from __future__ import annotations

import pytest

from reveal_analyzer.node import NodeAnalyzer
from reveal_contract import catalogue
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.finding import FindingChange
from reveal_contract.metric import Lane, Subsystem
from reveal_contract.settings import AnalyzerSettings
from support.synthetic_node import TABLE, Node

# as a node's collector saw it where a job of another node began to read from the disk they share
READING = {
    "storage.disk.reads{vda}": 64.0, "storage.disk.read_bytes{vda}": 6.4e6,
    "storage.disk.read_time{vda}": 4.5e7, "storage.disk.busy_time{vda}": 2e7,
    "memory.vm.pgpgin": 6.4e6, "memory.vm.workingset_refault_file": 107.0,
}  # fmt: skip
_MORE = ("storage.disk.writes", "storage.disk.write_time", "storage.disk.write_bytes")


def _channel(label: str) -> Channel:
    metric, _, instance = label.removesuffix("}").partition("{")
    row = catalogue.find(metric)
    return Channel(metric, instance, row.kind, 1.0, row.lane)


_DISK = [_channel(label) for label in (*READING, *(f"{metric}{{vda}}" for metric in _MORE))]
DISK = ChannelTable(
    (*TABLE.fast, *(c for c in _DISK if c.lane is Lane.FAST)),
    (*TABLE.slow, *(c for c in _DISK if c.lane is not Lane.FAST)),
)


def opened(changed: dict[str, float]) -> set[Subsystem]:
    """Return the subsystems with findings after two idle minutes and 30 s of these values."""
    node, judge = Node(DISK), NodeAnalyzer("n1", AnalyzerSettings(warmup_seconds=60))
    updates = []
    for second in range(150):
        message = node.slice(changed if second >= 120 else {})
        updates += judge.analyze(message, node.table)
    return {update.finding.subsystem for update in updates if update.change is FindingChange.OPENED}


def test_requests_of_normal_duration_are_no_harm() -> None:
    assert opened(READING) == set()


@pytest.mark.parametrize("milliseconds", [30, 300])
def test_slow_requests_are_harm(milliseconds: int) -> None:
    slow = READING | {"storage.disk.read_time{vda}": 64e6 * milliseconds}
    assert Subsystem.STORAGE in opened(slow)
