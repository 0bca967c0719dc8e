"""Pending reports on disk, as rows of JSON: they survive a restart of the pod.

The file is written as a whole and moved into place, so it is never incomplete.  It holds the newest
state of each report, not each step: its size is that of what is pending, and limited.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from reveal_analyzer.sinks.kube.entry import ReportEntry

log = logging.getLogger(__name__)

FILE = "reports.spool"
MAX_BYTES = 16 << 20  # the folder is memory: some 2,000 reports of the largest size


class Spool:
    """The rows of one file; ``corrupt`` counts those that could not be read.

    A folder that cannot be written only means that a restart loses what is pending.
    """

    def __init__(self, folder: Path | None) -> None:
        self._path = folder / FILE if folder is not None else None
        self.corrupt = 0
        self._failing = False

    def load(self) -> list[ReportEntry]:
        """Return what an earlier run left."""
        if self._path is None:
            return []
        try:
            with self._path.open("rb") as file:
                lines = file.read(MAX_BYTES).splitlines()
        except FileNotFoundError:
            return []
        except OSError as error:
            log.warning("pending reports cannot be read from %s: %s", self._path, error)
            return []
        entries = [entry for line in lines if (entry := self._entry(line)) is not None]
        if self.corrupt:
            log.warning("%d rows of %s could not be read", self.corrupt, self._path)
        if entries:
            log.info("%d reports of an earlier run wait for the API", len(entries))
        return entries

    def write(self, entries: Sequence[ReportEntry]) -> None:
        """Replace the file by these entries; the most severe ones where not all have room."""
        if self._path is None:
            return
        try:
            if entries:
                self._replace(self._rows(entries))
            else:
                self._path.unlink(missing_ok=True)
        except OSError as error:
            if not self._failing:
                log.warning("pending reports are kept in memory only: %s", error)
            self._failing = True
        else:
            self._failing = False

    def _rows(self, entries: Sequence[ReportEntry]) -> Iterable[bytes]:
        left = MAX_BYTES
        for entry in sorted(entries, key=lambda entry: -entry.report.severity.rank):
            row = json.dumps(entry.to_row(), separators=(",", ":")).encode() + b"\n"
            left -= len(row)
            if left < 0:
                return
            yield row

    def _replace(self, rows: Iterable[bytes]) -> None:
        assert self._path is not None
        self._path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._path.with_suffix(".new")
        with fresh.open("wb") as file:
            file.writelines(rows)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self._path)

    def _entry(self, line: bytes) -> ReportEntry | None:
        try:
            return ReportEntry.from_row(json.loads(line))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            self.corrupt += 1
            return None
