"""The findings of one node as an analyzer writes them, with the second in which each row came."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

# spliced seconds do not keep the rhythm of a job: what is found of its steps alone is not judged
_OF_STEPS = "Steps of "


@dataclass(frozen=True)
class HeardRow:
    """One row of the file; it was written between two seconds of the timeline."""

    after: int
    by: int
    row: dict[str, Any]

    @property
    def id(self) -> str:
        return str(self.row["id"])

    @property
    def resolved(self) -> bool:
        return bool(self.row["state"] == "Resolved")


@dataclass
class FindingsFile:
    """Reads what was appended since the last call."""

    path: Path
    node: str
    rows: list[HeardRow] = field(default_factory=list)
    _position: int = 0
    _second: int = 0

    def __post_init__(self) -> None:
        self._position = self.path.stat().st_size if self.path.exists() else 0

    def poll(self, second: int) -> None:
        """Take the new whole rows: they were written before this second was over."""
        if self.path.exists():
            with self.path.open("rb") as file:
                file.seek(self._position)
                data = file.read()
            whole, _, _ = data.rpartition(b"\n")
            self._position += len(whole) + (1 if whole else 0)
            for line in whole.splitlines():
                self._take(line, second)
        self._second = second

    def _take(self, line: bytes, second: int) -> None:
        try:
            row = json.loads(line)
        except ValueError:  # cut off by a kill
            return
        is_anomaly = row.get("nodeName") == self.node and row.get("kind", "Anomaly") == "Anomaly"
        if is_anomaly and not row.get("claim", "").startswith(_OF_STEPS):
            self.rows.append(HeardRow(self._second, second, row))


def second_of(time: str, start_ns: int) -> float:
    """Return a time of a row as a second of the timeline."""
    return datetime.fromisoformat(time).timestamp() - start_ns / 1e9
