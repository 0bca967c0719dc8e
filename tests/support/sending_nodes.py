"""Collectors of some nodes, and an analyzer that reads what they send, through real connections."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field

from reveal_analyzer.stream.reader import StreamReader
from reveal_collector.shipping.redis_sink import RedisSink
from reveal_collector.shipping.sinks import EncodedSlice
from reveal_contract import wire
from reveal_contract.settings import AnalyzerSettings, CollectorSettings
from support import redis_sinks
from support.polling import wait_until
from support.redis_streams import TABLE, message

NODES = ("n1", "n2", "n3")
COLLECTOR = "reveal-collector"
_BUFFERED = 600
# a Sentinel that stood still for 2 s does nothing for 30 s ("TILT mode" in its documentation)
_FAILOVER_S = 150


@dataclass
class SendingNodes:
    """Some nodes that send through one Redis, and one analyzer that reads what they send."""

    url: str
    stack: ExitStack
    sent: int = 0
    received: dict[str, list[int]] = field(default_factory=lambda: {node: [] for node in NODES})

    def __post_init__(self) -> None:
        settings = AnalyzerSettings(redis_url=self.url)
        self.reader = StreamReader(settings, "one", ack_seconds=0.0)
        self.stack.callback(self.reader.close)
        self.sinks = [self._sink(node) for node in NODES]

    def _sink(self, node: str) -> RedisSink:
        # slices come faster than one a second: a failover takes many
        settings = CollectorSettings(node, self.url, buffer_seconds=_BUFFERED)
        return self.stack.enter_context(redis_sinks.running(settings))

    def send(self) -> None:
        """Send a slice of each node, unless their buffers get full: an outage may take minutes."""
        if any(sink.health().buffered > _BUFFERED // 2 for sink in self.sinks):
            return
        for node, sink in zip(NODES, self.sinks, strict=True):
            data = wire.encode(message(node, self.sent), wire.gauges(TABLE))
            sink.put(EncodedSlice(node, b"b" * 16, self.sent, self.sent * 10**9, TABLE, data))
        self.sent += 1

    def send_until(self, condition: Callable[[], bool]) -> None:
        """Send and read until the condition holds."""

        def both() -> bool:
            self.send()
            self.read()
            return condition()

        wait_until(both, "the condition while nodes send", _FAILOVER_S)

    def exchange(self, until: Callable[[], bool]) -> None:
        """Send and read until the condition holds, then read the rest."""
        self.send_until(until)
        last = self.sent - 1
        wait_until(
            lambda: self.read() and all(last in each for each in self.received.values()),
            "the last slice of each node",
        )

    def read(self) -> bool:
        received = self.reader.poll()
        for each in received:
            self.received[each.node].append(each.message.sequence)
        self.reader.ack(received)
        return True

    @property
    def are_well(self) -> bool:
        """Whether all slices are delivered and nobody reports an error."""
        health = [sink.health() for sink in self.sinks]
        return self.reader.connected and not any(
            each.health_error or each.buffered for each in health
        )

    @property
    def delivered(self) -> list[int]:
        return [sink.health().delivered for sink in self.sinks]
