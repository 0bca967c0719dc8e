"""What the API has not taken yet, on disk: rows of JSON that survive a restart of the pod.

The file is written anew as a whole and moved into place, so that it is never half.  It holds the
newest state of each report, not each step: it is as large as what waits, and bounded.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from reveal_analyzer.sinks.kube.entry import Entry

log = logging.getLogger(__name__)

FILE = "reports.spool"
MAX_BYTES = 16 << 20  # the folder is memory: some two thousand reports of the largest kind


class Spool:
    """The rows of one file; ``corrupt`` counts those that could not be read.

    A folder that cannot be written costs what a restart would have saved, and no more.
    """

    def __init__(self, folder: Path | None) -> None:
        self._path = folder / FILE if folder is not None else None
        self.corrupt = 0
        self._failing = False

    def load(self) -> list[Entry]:
        """What an earlier run left."""
        if self._path is None:
            return []
        try:
            with self._path.open("rb") as file:
                lines = file.read(MAX_BYTES).splitlines()
        except FileNotFoundError:
            return []
        except OSError as error:
            log.warning("reports that wait cannot be read from %s: %s", self._path, error)
            return []
        entries = [entry for line in lines if (entry := self._entry(line)) is not None]
        if self.corrupt:
            log.warning("%d rows of %s could not be read", self.corrupt, self._path)
        if entries:
            log.info("%d reports of an earlier run wait for the API", len(entries))
        return entries

    def keep(self, entries: Sequence[Entry]) -> None:
        """These and no others wait now; the most severe where not all have room."""
        if self._path is None:
            return
        try:
            if entries:
                self._replace(self._rows(entries))
            else:
                self._path.unlink(missing_ok=True)
        except OSError as error:
            if not self._failing:
                log.warning("reports that wait are kept in memory only: %s", error)
            self._failing = True
        else:
            self._failing = False

    def _rows(self, entries: Sequence[Entry]) -> Iterable[bytes]:
        left = MAX_BYTES
        for entry in sorted(entries, key=lambda one: -one.report.severity.rank):
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

    def _entry(self, line: bytes) -> Entry | None:
        try:
            return Entry.from_row(json.loads(line))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            self.corrupt += 1
            return None
