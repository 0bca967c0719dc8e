"""Sinks: the places that findings are written to, one change of one finding at a time."""

from __future__ import annotations

from typing import Protocol

from reveal_contract.finding import FindingUpdate


class Sink(Protocol):
    """Takes changes in order; an error that passes is counted and stops no other sink."""

    def write(self, update: FindingUpdate) -> None: ...

    def close(self) -> None: ...
