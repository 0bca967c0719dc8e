"""Sinks: the places that findings are written to, one change of one finding at a time."""

from __future__ import annotations

from typing import Protocol

from reveal_contract.finding import FindingUpdate


class Sink(Protocol):
    """Takes updates in order.  The worker counts errors; they stop no other sink."""

    def write(self, update: FindingUpdate) -> None:
        """Take one update."""

    def close(self) -> None:
        """Write what is left."""
