"""Sinks: the places that findings are written to, one change of one finding at a time."""

from __future__ import annotations

from typing import Protocol

from reveal_contract.finding import FindingUpdate


class Sink(Protocol):
    """Takes updates in order.  The worker counts errors; they stop no other sink."""

    def write(self, update: FindingUpdate) -> None:
        """Take one update."""

    def forget(self, node: str, lost: str = "") -> None:
        """Forget the open findings of a node, which nobody observes here any more.

        Another analyzer continues them, unless ``lost`` says why they are lost.
        """

    def close(self) -> None:
        """Write what is left."""
