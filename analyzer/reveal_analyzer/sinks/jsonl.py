"""Findings as rows of JSON, one for each change, appended to a file."""

from __future__ import annotations

import json
import logging
import os
import time
from collections import deque
from dataclasses import replace
from pathlib import Path

from reveal_contract.finding import Finding, FindingChange, FindingUpdate, Resolution, State

log = logging.getLogger(__name__)

MAX_KEPT = 10_000  # rows in memory while the file cannot be written; the oldest are dropped


class JsonlSink:
    """Appends a row for each change except suspicions; the file only ever has whole rows.

    While the file cannot be written (full disk) rows are ``kept`` in memory and written with the
    next one; ``dropped`` counts those over the limit.  Raises ``OSError`` where the file cannot be
    opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.kept: deque[bytes] = deque()
        self.dropped = 0
        self._open: dict[str, Finding] = {}
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._failing = False
        if _ends_inside_a_row(self._fd):  # an earlier process was killed during a write
            os.write(self._fd, b"\n")

    def write(self, update: FindingUpdate) -> None:
        """Append one row."""
        if update.change is FindingChange.SUSPECTED:
            return
        self._open.pop(update.finding.id, None)
        if update.finding.state is State.OPEN:
            self._open[update.finding.id] = update.finding
        self._add(update.finding)
        self.flush()

    def forget(self, node: str, lost: str = "") -> None:
        """Forget a node's open findings; those that are lost get their last row here."""
        gone = [finding for finding in self._open.values() if finding.node_name == node]
        for finding in gone:
            del self._open[finding.id]
            if lost:
                self._add(_unobserved(finding, lost, time.time_ns()))
        self.flush()

    def _add(self, finding: Finding) -> None:
        row = json.dumps(finding.to_dict(), ensure_ascii=False, separators=(",", ":"))
        self.kept.append(row.encode(errors="replace") + b"\n")
        if len(self.kept) > MAX_KEPT:
            self.kept.popleft()
            self.dropped += 1

    def flush(self) -> bool:
        """Write the kept rows; return whether all of them are in the file."""
        while self.kept:
            try:
                self._append(self.kept[0])
            except OSError as error:
                self._log_failing(error)
                return False
            self.kept.popleft()
        if self._failing:
            log.warning("findings are written to %s again; %d were lost", self.path, self.dropped)
            self._failing = False
        return True

    def close(self) -> None:
        """Write what can be written; further calls do nothing."""
        if self._fd < 0:
            return
        if not self.flush():
            log.error("%d findings could not be written to %s", len(self.kept), self.path)
        os.close(self._fd)
        self._fd = -1

    def _append(self, row: bytes) -> None:
        if (written := os.write(self._fd, row)) == len(row):
            return
        # the disk took a part of the row: remove it, or the next row would be broken too
        os.ftruncate(self._fd, os.fstat(self._fd).st_size - written)
        raise OSError(f"only {written} of {len(row)} bytes were written")

    def _log_failing(self, error: OSError) -> None:
        if not self._failing:
            log.error("%s cannot be written, findings are kept in memory: %s", self.path, error)
        self._failing = True


def _unobserved(finding: Finding, why: str, now_ns: int) -> Finding:
    return replace(
        finding,
        state=State.RESOLVED,
        resolution=Resolution.UNOBSERVED,
        resolved_ns=max(now_ns, finding.last_observed_ns),
        notes=(*finding.notes, why),
    )


def _ends_inside_a_row(fd: int) -> bool:
    size = os.fstat(fd).st_size
    return size > 0 and os.pread(fd, 1, size - 1) != b"\n"
