"""What sinks are: where finished slices go."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from reveal_contract.channels import ChannelTable
from reveal_contract.recording import Writer

log = logging.getLogger(__name__)

Report = Callable[[], Mapping[str, Any]]


@dataclass(frozen=True)
class Shipment:
    """One slice, encoded, with what a stream message repeats outside of the bytes."""

    node: str
    boot: bytes
    sequence: int
    start_ns: int
    table: ChannelTable
    data: bytes


@dataclass(frozen=True)
class SinkHealth:
    """``trouble`` is one sentence while the sink cannot do its work, else empty."""

    delivered: int = 0
    buffered: int = 0
    dropped: int = 0
    trouble: str = ""


class Sink(Protocol):
    """Takes shipments in order; ``put`` neither blocks for long nor raises."""

    def start(self, report: Report) -> None:
        """Begin; ``report`` gives what the collector says of itself (JSON values)."""

    def put(self, shipment: Shipment) -> None: ...

    def health(self) -> SinkHealth: ...

    def close(self, timeout: float) -> None:
        """Deliver what is left for at most ``timeout`` seconds, then end."""


class RecordingSink:
    """Writes slices into a recording; one that cannot be written (full disk) is left out."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._delivered = self._dropped = 0
        self._trouble = ""

    def start(self, report: Report) -> None:
        """A recording needs no report."""

    def put(self, shipment: Shipment) -> None:
        try:
            self._writer.message(shipment.data, shipment.table)
        except OSError as error:
            self._dropped += 1
            trouble = f"recording {self._writer.path} lacks slices: {error.strerror}"
            if trouble != self._trouble:
                log.error("%s", trouble)
            self._trouble = trouble
            return
        self._delivered += 1

    def health(self) -> SinkHealth:
        return SinkHealth(self._delivered, 0, self._dropped, self._trouble)

    def close(self, timeout: float) -> None:
        try:
            self._writer.close()
        except OSError as error:
            log.error("recording %s: %s", self._writer.path, error)
