"""Where findings go: each sink takes one change of one finding at a time."""

from __future__ import annotations

from typing import Protocol

from reveal_contract.finding import Finding

SUSPECTED = "Suspected"  # seen for a moment: counted, not reported
OPENED = "Opened"
RESOLVED = "Resolved"


class Change(Protocol):
    """One step in the life of a finding: what happened, and the finding after it."""

    @property
    def change(self) -> str: ...

    @property
    def finding(self) -> Finding: ...


class Sink(Protocol):
    """Takes changes in order; an error that passes is counted and stops no other sink."""

    def write(self, change: Change) -> None: ...

    def close(self) -> None: ...
