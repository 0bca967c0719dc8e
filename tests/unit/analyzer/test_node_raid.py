"""Software RAID arrays through the analyzer: what is found, with a baseline and without."""

from __future__ import annotations

import pytest

from reveal_analyzer.node import NodeAnalyzer
from reveal_contract import catalogue
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.finding import FindingChange, Severity
from reveal_contract.metric import Lane
from reveal_contract.settings import AnalyzerSettings
from support.synthetic_node import TABLE, Node

_ARRAY = ("missing", "broken", "rebuilding", "checking", "sync_speed", "mismatches")
_DISK = ("reads", "read_time", "read_bytes", "busy_time", "in_flight", "writes", "write_time")


def _channel(metric: str, instance: str) -> Channel:
    row = catalogue.find(metric)
    return Channel(metric, instance, row.kind, 1.0, row.lane)


_CHANNELS = [_channel(f"storage.raid.{name}", "md0") for name in _ARRAY]
_CHANNELS += [_channel(f"storage.disk.{name}", "sda") for name in _DISK]
RAID_TABLE = ChannelTable(
    (*TABLE.fast, *(c for c in _CHANNELS if c.lane is Lane.FAST)),
    (*TABLE.slow, *(c for c in _CHANNELS if c.lane is not Lane.FAST)),
)
QUIET = {f"storage.raid.{name}{{md0}}": 0.0 for name in _ARRAY}
# requests that take 50 ms instead of 1 ms
READ = {"storage.disk.reads{sda}": 10.0, "storage.disk.read_time{sda}": 1e7}
SLOW = {
    "storage.disk.reads{sda}": 2000.0, "storage.disk.read_time{sda}": 1e11,
    "storage.disk.busy_time{sda}": 1e9,
}  # fmt: skip


def raid(**values: float) -> dict[str, float]:
    return {f"storage.raid.{name}{{md0}}": value for name, value in values.items()}


def opened(changed: dict[str, float], quiet: int = 120) -> dict[str, Severity]:
    """Return the causes that are found in 30 s of these values after quiet seconds."""
    node, judge = Node(RAID_TABLE), NodeAnalyzer("n1", AnalyzerSettings(warmup_seconds=60))
    found = {}
    for second in range(quiet + 30):
        now = QUIET | READ | (changed if second >= quiet else {})
        for update in judge.analyze(node.slice(now), node.table):
            if update.change is FindingChange.OPENED:
                name = update.finding.hypothesis.name if update.finding.hypothesis else ""
                found[name] = update.finding.severity
    return found


def test_a_quiet_array_is_no_finding() -> None:
    assert opened({}) == {}


@pytest.mark.parametrize("quiet", [0, 120])
@pytest.mark.parametrize(
    ("values", "cause", "severity"),
    [
        ({"missing": 1.0}, "RAIDDegraded", Severity.MEDIUM),
        ({"rebuilding": 1.0, "sync_speed": 1e8}, "RAIDRebuild", Severity.LOW),
        ({"broken": 1.0}, "RAIDBroken", Severity.CRITICAL),
    ],
)
def test_the_state_of_an_array_is_found_also_if_it_is_older_than_the_analysis(
    values: dict[str, float], cause: str, severity: Severity, quiet: int
) -> None:
    assert opened(raid(**values), quiet).get(cause) is severity


def test_a_check_is_named_where_requests_take_longer() -> None:
    assert "RAIDCheck" in opened(raid(checking=1.0, sync_speed=1e8) | SLOW)


def test_a_check_that_delays_nobody_is_no_finding() -> None:
    assert opened(raid(checking=1.0, sync_speed=1e7)) == {}
