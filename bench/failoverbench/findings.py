"""What analyzers report of faults that are known: found, lost, twice, and how late."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from benchmark_report import Row
from failoverbench.fleet import CYCLE_S, FAULT_S, Fault

TOLERANCE_S = 2


class Reported(NamedTuple):
    """A finding: when it was first observed, and when it was read (s since the epoch)."""

    node: str
    onset_s: float
    read_s: float


class Findings:
    """Reads what analyzers append to files; the first row of a finding counts."""

    def __init__(self, *paths: Path) -> None:
        self._offsets = dict.fromkeys(paths, 0)
        self._known = set[str]()
        self.reported: list[Reported] = []

    def add(self, path: Path) -> None:
        """Read this file, too."""
        self._offsets[path] = 0

    def read(self) -> None:
        for path in self._offsets:
            self._read(path)

    def follow(self, seconds: float) -> None:
        """Read for so long."""
        ends = time.time() + max(seconds, 0.0)
        while True:
            self.read()
            if time.time() >= ends:
                return
            time.sleep(0.1)

    def _read(self, path: Path) -> None:
        with path.open("rb") as file:
            file.seek(self._offsets[path])
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._offsets[path] += len(line)
                self._add(json.loads(line))

    def _add(self, row: Mapping[str, str]) -> None:
        if row["id"] not in self._known:
            self._known.add(row["id"])
            onset = datetime.fromisoformat(row["firstSeenTime"]).timestamp()
            self.reported.append(Reported(row["nodeName"], onset, time.time()))


def compared(every: Sequence[Fault], found: Findings, disturbances: Sequence[float]) -> Row:
    """Compare faults with findings; ``disturbances`` are times (s since the epoch)."""
    # the last faults may not have been reported yet
    faults = [fault for fault in every if fault.onset_s < time.time() - CYCLE_S / 2]
    gaps, lost, duplicates = list[tuple[float, float]](), 0, 0
    for fault in faults:
        own = [each for each in found.reported if _is_of(each, fault)]
        lost += not own
        duplicates += len(own) > 1
        gaps += [(fault.onset_s, min(each.read_s for each in own) - fault.onset_s)] if own else []
    matched = sum(any(_is_of(each, fault) for fault in every) for each in found.reported)
    disturbed = [gap for onset, gap in gaps if _is_disturbed(onset, disturbances)]
    quiet = [gap for onset, gap in gaps if not _is_disturbed(onset, disturbances)]
    return {
        "faults": len(faults), "lost": lost, "duplicates": duplicates,
        "of no fault": len(found.reported) - matched,
        "gap s, median": statistics.median(quiet) if quiet else 0.0,
        "of faults in outages": statistics.median(disturbed) if disturbed else 0.0,
        "longest": max((gap for _, gap in gaps), default=0.0),
    }  # fmt: skip


def _is_of(each: Reported, fault: Fault) -> bool:
    late = each.onset_s - fault.onset_s
    return each.node == fault.node and -TOLERANCE_S <= late < FAULT_S + TOLERANCE_S


def _is_disturbed(onset_s: float, disturbances: Sequence[float]) -> bool:
    return any(each - FAULT_S / 2 <= onset_s <= each + FAULT_S / 2 for each in disturbances)
