"""A collector whose sources hang: the others go on, and status, metrics and slices say so."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress

import pytest

from reveal_analyzer.telemetry.degraded import degradations
from reveal_collector.collector import Collector
from reveal_collector.exporter.metrics import families
from reveal_collector.readers.background import BackgroundSource
from reveal_collector.shipping.sinks import EncodedSlice, SinkHealth, StatusProvider
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Kind, Lane
from reveal_contract.settings import CollectorSettings
from reveal_contract.wire import Message, decode, gauges
from support.polling import wait_until

METRICS = {
    "fast": "memory.mem_free",
    "rare": "cpu.temperature.board",
    "good": "memory.temperature",
    "behind": "network.nic.mtu",
}


class Device:
    """A source whose reads hang from the first one on that finds its pipe empty, or never."""

    def __init__(self, name: str, lane: Lane, answers: bool) -> None:
        self.name, self.lane, self._answers = name, lane, answers
        self.channels: tuple[Channel, ...] = (Channel(METRICS[name], "", Kind.GAUGE, 1.0, lane),)
        self._reader, self._writer = os.pipe()

    def open(self) -> None: ...

    def read(self) -> Sequence[int | None]:
        if not self._answers:
            os.read(self._reader, 1)
        return [5]

    def close(self) -> None:
        with suppress(OSError):  # the end of the pipe ends a read that hangs
            os.close(self._writer)


class Memory:
    """A sink that keeps its slices, decoded."""

    nonblocking = True

    def __init__(self) -> None:
        self.slices: list[tuple[Message, ChannelTable]] = []

    def start(self, status: StatusProvider) -> None: ...

    def put(self, encoded: EncodedSlice) -> None:
        self.slices.append((decode(encoded.data, gauges(encoded.table)), encoded.table))

    def health(self) -> SinkHealth:
        return SinkHealth(len(self.slices))

    def close(self, timeout: float) -> None: ...

    def last(self) -> dict[str, int | None]:
        """The last value of each channel, ``None`` where the wire says that there is none."""
        message, table = self.slices[-1]
        fast = zip(table.fast, message.fast[-1], message.fast_missing[-1], strict=True)
        slow = zip(table.slow, message.slow, message.slow_missing, strict=True)
        return {each.metric: None if gone else int(value) for each, value, gone in (*fast, *slow)}


@pytest.fixture
def sink() -> Memory:
    return Memory()


@pytest.fixture
def collector(sink: Memory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    monkeypatch.setattr("reveal_collector.sampling.feed.HUNG_NS", 100_000_000)
    behind = BackgroundSource(Device("behind", Lane.SLOW, answers=False))
    behind.open()
    built = Collector(
        CollectorSettings("n1", ""),
        [sink],
        [
            Device("fast", Lane.FAST, answers=True),
            behind,
            Device("rare", Lane.RARE, answers=False),
            Device("good", Lane.RARE, answers=True),
        ],
    )
    built.start()
    yield built
    built.stop()


def test_sources_that_hang_are_stated_and_hold_up_no_other(
    collector: Collector, sink: Memory
) -> None:
    wait_until(lambda: bool(sink.slices) and sink.last()["memory.temperature"] == 5)
    wait_until(lambda: len(collector.status().failing) == 2)
    values = sink.last()
    assert values["memory.mem_free"] == 5
    assert (values["cpu.temperature.board"], values["network.nic.mtu"]) == (None, None)

    status = collector.status()
    assert {each.source for each in status.failing} == {"behind", "rare"}
    assert set(map(str, status.failing)) <= set(status.degraded)
    [up] = [family for family in families(status) if family.name == "reveal_collector_source_up"]
    assert {sample.labels["source"]: sample.value for sample in up.samples} == {
        "fast": 1, "behind": 0, "rare": 0, "good": 1, "own": 1,
    }  # fmt: skip


def test_the_analyzer_reads_a_reason_for_each_source_that_hangs(collector: Collector) -> None:
    wait_until(lambda: len(collector.status().failing) == 2)
    report = json.dumps(collector.status().to_node_status()).encode()
    found = {each.reason: each.message for each in degradations("n1", report)}
    assert {"BehindUnavailable", "RareUnavailable"} <= found.keys()
    assert "rare: has not answered since " in found["RareUnavailable"]
    assert "has not answered" not in found.get("CollectorReduced", "")


def test_the_collectors_own_read_time_is_missing_for_a_source_that_hangs(
    collector: Collector, sink: Memory
) -> None:
    def read_times() -> dict[str, bool]:
        message, table = sink.slices[-1]
        return {
            each.instance: not gone
            for each, gone in zip(table.slow, message.slow_missing, strict=True)
            if each.metric == "own.read_time"
        }

    wait_until(
        lambda: (
            bool(sink.slices)
            and read_times() == {"fast": True, "behind": False, "rare": False, "good": True}
        )
    )


def test_ticks_that_have_stopped_are_not_exported(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait_until(lambda: collector.recent_tick() is not None)
    collector.stop()
    monkeypatch.setattr("reveal_collector.collector.HUNG_NS", 0)
    assert collector.recent_tick() is None


def test_a_collector_that_hangs_stops_in_time(collector: Collector) -> None:
    wait_until(lambda: len(collector.status().failing) == 2)
    stopping = threading.Thread(target=collector.stop, daemon=True)
    stopping.start()
    stopping.join(10)
    assert not stopping.is_alive()


def test_a_source_that_hangs_in_the_tick_thread_is_stated_and_costs_only_itself(
    sink: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reveal_collector.sampling.feed.HUNG_NS", 100_000_000)
    monkeypatch.setattr("reveal_collector.sampling.tick_watch.PERIOD_S", 0.2)
    hung = Device("good", Lane.SLOW, answers=False)
    collector = Collector(
        CollectorSettings("n1", ""), [sink], [Device("fast", Lane.FAST, answers=True), hung]
    )
    collector.start()
    try:
        wait_until(lambda: bool(sink.slices) and sink.last()["memory.mem_free"] == 5)
        assert sink.last()["memory.temperature"] is None
        status = collector.status()
        assert [each.source for each in status.failing] == ["good"]
        assert set(map(str, status.failing)) <= set(status.degraded)
        assert {feed.source: feed.up for feed in status.feeds} == {
            "fast": True, "good": False, "own": True,
        }  # fmt: skip
        report = json.dumps(status.to_node_status()).encode()
        assert "GoodUnavailable" in {each.reason for each in degradations("n1", report)}
    finally:
        collector.stop()
