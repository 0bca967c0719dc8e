"""The scanner in C, pass by pass; for tests that skip where the library is not built."""

from __future__ import annotations

from collections.abc import Sequence

from reveal_collector.native.scanner import NativePlan, PlanRunner, RowLayout, ScanEntry
from reveal_collector.readers.plan import FileScan


def start_scan_pass(scans: Sequence[FileScan], room: int = 1) -> PlanRunner:
    """A pass over these files alone."""
    width = sum(scan.plan.width for scan in scans)
    runner = PlanRunner(NativePlan([ScanEntry(0, scans, 0, room=room)], RowLayout(width, 0, 1)))
    runner.begin()
    return runner
