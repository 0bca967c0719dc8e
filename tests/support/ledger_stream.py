"""Seconds of a node with the ledger, as its collector writes them to Redis."""

from __future__ import annotations

from collections.abc import Mapping

from reveal_contract import names, wire
from support.ledger_node import Times, ledger_node, ledger_values
from support.redis_streams import Stream


def send_seconds(stream: Stream, times: Mapping[str, Times], seconds: int) -> None:
    """Announce node ``n1`` with these subjects, and write its slices."""
    node = ledger_node(*times)
    stream.announce(node.table)
    for _ in range(seconds):
        message = node.slice(ledger_values(times))
        data = wire.encode(message, wire.gauges(node.table))
        stream.raw("n1", {names.FIELD_NODE: "n1", names.FIELD_TIME: message.start_ns,
                          names.FIELD_DATA: data})  # fmt: skip
