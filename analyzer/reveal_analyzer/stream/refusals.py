"""The log of messages that cannot be used: some lines a minute, as thousands may follow."""

from __future__ import annotations

import logging
import time

from reveal_analyzer.stream.consumer import StreamEntry
from reveal_contract.names import FIELD_NODE

log = logging.getLogger(__name__)

LOGGED_REFUSALS = 20  # in a minute; all are counted
_NODE = FIELD_NODE.encode()


class RefusalLog:
    """Logs refused messages, ``LOGGED_REFUSALS`` in a minute at most."""

    def __init__(self) -> None:
        self._began_s, self._logged = 0.0, 0

    def log(self, entry: StreamEntry, reason: str) -> None:
        """Log a refused message."""
        if time.monotonic() - self._began_s > 60:
            self._began_s, self._logged = time.monotonic(), 0
        if self._logged < LOGGED_REFUSALS:
            log.warning(
                "message %s of shard %d from %r refused: %s",
                entry.id.decode(), entry.shard, entry.fields.get(_NODE, b""), reason,
            )  # fmt: skip
        self._logged += 1
