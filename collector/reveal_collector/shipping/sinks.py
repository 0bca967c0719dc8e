"""What sinks are: where finished slices go."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from reveal_contract.channels import ChannelTable
from reveal_contract.recording import Writer

log = logging.getLogger(__name__)

_SUBJECT_SLICES = 5  # how often the subjects are compared while the table stays

StatusProvider = Callable[[], Mapping[str, Any]]


@dataclass(frozen=True)
class EncodedSlice:
    """One slice, encoded, with what a stream message repeats outside of the bytes.

    ``facts`` is the JSON of the node's facts, the same object until they change.
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
    """``trouble`` is one sentence while the sink cannot do its work, else empty."""

    delivered: int = 0
    buffered: int = 0
    dropped: int = 0
    health_error: str = ""


class Sink(Protocol):
    """Takes shipments in order; ``put`` neither blocks for long nor raises.

    ``prompt``: it touches nothing but memory.
    """

    nonblocking: bool

    def start(self, report: StatusProvider) -> None:
        """Begin; ``report`` gives what the collector says of itself (JSON values)."""

    def put(self, shipment: EncodedSlice) -> None: ...

    def health(self) -> SinkHealth: ...

    def close(self, timeout: float) -> None:
        """Deliver what is left for at most ``timeout`` seconds, then end."""


class RecordingSink:
    """Writes slices into a recording; one that cannot be written (full disk) is left out.

    Before a slice that needs it, a note says who the subjects are.
    """

    nonblocking = False

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._facts: bytes | None = None
        self._delivered = self._dropped = 0
        self._health_error = ""
        self._report: StatusProvider = dict
        self._table = b""
        self._subjects: object = []

    def start(self, report: StatusProvider) -> None:
        self._report = report

    def put(self, shipment: EncodedSlice) -> None:
        try:
            self._note_subjects(shipment)
            if shipment.facts is not None and shipment.facts is not self._facts:
                self._writer.facts(shipment.facts)
                self._facts = shipment.facts
            self._writer.message(shipment.data, shipment.table)
        except OSError as error:
            self._dropped += 1
            health_error = f"recording {self._writer.path} lacks slices: {error.strerror}"
            if health_error != self._health_error:
                log.error("%s", health_error)
            self._health_error = health_error
            return
        self._delivered += 1

    def _note_subjects(self, shipment: EncodedSlice) -> None:
        if shipment.table.key == self._table and shipment.sequence % _SUBJECT_SLICES:
            return
        self._table = shipment.table.key
        subjects = self._report().get("subjects", [])
        if subjects != self._subjects:
            self._writer.note({"node": shipment.node, "subjects": subjects})
            self._subjects = subjects

    def health(self) -> SinkHealth:
        return SinkHealth(self._delivered, 0, self._dropped, self._health_error)

    def close(self, timeout: float) -> None:
        try:
            self._writer.close()
        except OSError as error:
            log.error("recording %s: %s", self._writer.path, error)
