"""The index beside a recording: what was injected when, and what else the host was doing."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

VERSION = 1
SUFFIX = ".session.json"


class IndexFileError(ValueError):
    """The file is no index of a recording; the text says why."""


@dataclass(frozen=True)
class CaseRow:
    """One injected fault; times are the wall clock's, as in the recorded messages."""

    fault: str
    kind: str
    weak: bool
    subsystems: list[str]
    subject: str | None
    neighbour_cores: float
    begin_ns: int
    onset_ns: int
    offset_ns: int
    end_ns: int


@dataclass
class Index:
    """One session.  ``skipped`` maps faults that this host cannot have to the reason."""

    workload: str
    recording: str
    start_ns: int
    host: dict[str, Any]
    warm_ns: int = 0
    end_ns: int = 0
    neighbour_cores: float = 0.0
    cases: list[CaseRow] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)

    def clock(self, time_ns: int) -> float:
        """Seconds since the session began."""
        return (time_ns - self.start_ns) / 1e9

    def save(self, directory: Path) -> None:
        """Write it whole or not at all."""
        path = directory / (Path(self.recording).stem + SUFFIX)
        fresh = path.with_suffix(".new")
        fresh.write_text(json.dumps({"version": VERSION, **asdict(self)}, indent=1))
        fresh.replace(path)


def read_index(path: Path) -> Index:
    """Parse what ``save`` wrote; raises ``IndexFileError``."""
    try:
        row = json.loads(path.read_text())
        if row.pop("version") != VERSION:
            raise ValueError(f"it is not of version {VERSION}")
        row["cases"] = [CaseRow(**case) for case in row["cases"]]
        return Index(**row)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise IndexFileError(f"{path} is no index of a recording: {error}") from None
