"""The slice in a stream entry: whose it is, and its values."""

from __future__ import annotations

from reveal_analyzer.kernels import backend
from reveal_analyzer.stream.consumer import StreamEntry
from reveal_analyzer.stream.kept_tables import DecodableTable
from reveal_contract import wire
from reveal_contract.names import FIELD_DATA, shard

_DATA = FIELD_DATA.encode()


def peek(entry: StreamEntry) -> tuple[str, bytes]:
    """Return node and table key; raises ``WireError`` for what this shard cannot hold."""
    data = entry.fields.get(_DATA)
    if data is None:
        raise wire.WireError(f"it has no field {FIELD_DATA!r}")
    node, key = wire.peek(data)
    if shard(node) != entry.shard:
        raise wire.WireError(f"node {node!r} belongs to shard {shard(node)}")
    return node, key


def decode(data: bytes, known: DecodableTable) -> wire.Message:
    """Return the message; raises ``WireError``, also where it disagrees with its table."""
    message = wire.decode(data, known.gauges, backend.current().unpack)
    if message.slow.size != len(known.table.slow):
        raise wire.WireError(
            f"table has {len(known.table.slow)} slow channels, message {message.slow.size}"
        )
    return message
