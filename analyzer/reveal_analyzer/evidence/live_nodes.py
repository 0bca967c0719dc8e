"""What the stream has of nodes now, for people who watch one from elsewhere."""

from __future__ import annotations

import threading
from typing import Any

import redis

from reveal_analyzer.evidence.stream_slices import StreamSlices
from reveal_analyzer.telemetry.node_records import (
    IsProven,
    NodeRecords,
    any_origin,
    known_nodes,
    nodes_text,
)
from reveal_contract.foreign_names import printable
from reveal_contract.names import CPU_SHARES, STATUS, SUBJECTS
from reveal_contract.recording import RecordingBuffer

_FIELDS = {"subjects": SUBJECTS, "cpuShares": CPU_SHARES, "status": STATUS}


class LiveNodes:
    """Reads nodes of a profile, what proves its origin; methods raise what redis-py raises."""

    def __init__(self, client: redis.Redis, profile: str, is_proven: IsProven = any_origin) -> None:
        self._client, self._profile = client, profile
        self._slices = StreamSlices(client, profile, is_proven)
        self._records = NodeRecords(client, profile, is_proven)
        self._lock = threading.Lock()  # each request has a thread

    def recording(self, node: str, since_ns: int) -> bytes:
        """Return a recording of the slices that begin after ``since_ns``.

        Raises ``LookupError`` with a sentence if the stream has none at all.
        """
        with self._lock:
            found = self._slices.messages_since(node, since_ns)
        if not found and since_ns <= 0:
            known = nodes_text(known_nodes(self._client, self._profile))
            raise LookupError(f"{printable(node)} has sent nothing in the last two minutes{known}")
        recording = RecordingBuffer()
        for data, table in found:
            recording.message(data, table)
        return recording.to_bytes()

    def names(self) -> list[str]:
        """Return the nodes whose collectors published something in the last hour."""
        return known_nodes(self._client, self._profile)

    def announced(self, node: str) -> dict[str, Any]:
        """Return the texts that the collector published, None for what it did not."""
        found = self._records.fields(node, list(_FIELDS.values()))
        texts = [None if value is None else value.decode(errors="replace") for value in found]
        return dict(zip(_FIELDS, texts, strict=True))
