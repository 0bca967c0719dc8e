"""The interface of sinks, which deliver finished slices, and the sink that writes a recording."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from reveal_contract.channels import ChannelTable
from reveal_contract.cpu_shares import EQUAL_SHARES
from reveal_contract.names import CPU_SHARES, SUBJECTS
from reveal_contract.recording import RecordingWriter

log = logging.getLogger(__name__)

_SUBJECT_SLICES = 5  # slices between two checks of the subjects while the table is unchanged

StatusProvider = Callable[[], Mapping[str, Any]]


@dataclass(frozen=True)
class EncodedSlice:
    """One slice as wire bytes, with the fields that a stream message repeats outside of them.

    ``facts`` is the JSON of the node's facts: the same object until they change.
    """

    node: str
    boot: bytes
    sequence: int
    start_ns: int
    table: ChannelTable
    data: bytes
    facts: bytes | None = None


@dataclass(frozen=True)
class SinkHealth:
    """Counts of slices; ``health_error`` is one sentence while the sink does not work."""

    delivered: int = 0
    buffered: int = 0
    dropped: int = 0
    health_error: str = ""


class Sink(Protocol):
    """Accepts slices in order; ``put`` neither blocks for long nor raises.

    ``nonblocking`` sinks touch only memory in ``put``.
    """

    nonblocking: bool

    def start(self, status: StatusProvider) -> None:
        """Start; ``status`` returns the status of this node (JSON values)."""

    def put(self, encoded: EncodedSlice) -> None:
        """Accept a slice."""

    def health(self) -> SinkHealth:
        """Return the counts and the current error."""

    def close(self, timeout: float) -> None:
        """Deliver the remaining slices for at most ``timeout`` seconds, then stop."""


class RecordingSink:
    """Writes slices to a recording; drops those that cannot be written (full disk).

    It writes subjects and their CPU shares as notes before the first slice that needs them.
    """

    nonblocking = False

    def __init__(self, writer: RecordingWriter) -> None:
        self._writer = writer
        self._facts: bytes | None = None
        self._delivered = self._dropped = 0
        self._error = ""
        self._status: StatusProvider = dict
        self._table = b""
        self._noted: dict[str, object] = {SUBJECTS: [], CPU_SHARES: EQUAL_SHARES.to_rows()}

    def start(self, status: StatusProvider) -> None:
        """Set the function that returns the subjects."""
        self._status = status

    def put(self, encoded: EncodedSlice) -> None:
        """Write a slice."""
        try:
            self._note_subjects(encoded)
            if encoded.facts is not None and encoded.facts is not self._facts:
                self._writer.facts(encoded.facts)
                self._facts = encoded.facts
            self._writer.message(encoded.data, encoded.table)
        except OSError as error:
            self._dropped += 1
            message = f"recording {self._writer.path} is incomplete: {error.strerror}"
            if message != self._error:
                log.error("%s", message)
            self._error = message
            return
        self._delivered += 1

    def _note_subjects(self, encoded: EncodedSlice) -> None:
        if encoded.table.key == self._table and encoded.sequence % _SUBJECT_SLICES:
            return
        self._table = encoded.table.key
        status = self._status()
        for field, noted in self._noted.items():
            current = status.get(field, noted)
            if current != noted:
                self._writer.note({"node": encoded.node, field: current})
                self._noted[field] = current

    def health(self) -> SinkHealth:
        """Return the counts and the current error."""
        return SinkHealth(self._delivered, 0, self._dropped, self._error)

    def close(self, timeout: float) -> None:
        """Close the recording."""
        try:
            self._writer.close()
        except OSError as error:
            log.error("recording %s: %s", self._writer.path, error)
