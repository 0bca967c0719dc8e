"""Seconds of a node with the ledger, as its collector writes them to Redis."""

from __future__ import annotations

from collections.abc import Mapping

from reveal_contract import names, wire
from support.ledger_node import Times, ledger_node, ledger_values
from support.redis_streams import Stream


class StreamedNode:
    """Node ``n1`` with these subjects, which is announced."""

    def __init__(self, stream: Stream, times: Mapping[str, Times]) -> None:
        self._stream, self._times = stream, times
        self._node = ledger_node(*times)
        stream.announce(self._node.table)

    def send(self, seconds: int) -> None:
        """Write its next slices."""
        table = self._node.table
        for _ in range(seconds):
            message = self._node.slice(ledger_values(self._times))
            data = wire.encode(message, wire.gauges(table))
            self._stream.raw("n1", {names.FIELD_NODE: "n1", names.FIELD_TIME: message.start_ns,
                                    names.FIELD_DATA: data})  # fmt: skip


def send_seconds(stream: Stream, times: Mapping[str, Times], seconds: int) -> None:
    """Announce the node, and write its slices."""
    StreamedNode(stream, times).send(seconds)
