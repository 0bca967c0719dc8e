"""Recordings: written while a scan runs, read slice by slice."""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from reveal_cli.errors import CliError
from reveal_contract.channels import ChannelTable
from reveal_contract.cpu_shares import EQUAL_SHARES, CpuShares, SharesError
from reveal_contract.facts import Facts
from reveal_contract.names import CPU_SHARES
from reveal_contract.recording import (
    RecordingEntry,
    RecordingError,
    RecordingReader,
    RecordingWriter,
)
from reveal_contract.subjects import Identity, SubjectsError, from_rows
from reveal_contract.wire import Message, WireError, decode, gauges

MOST_UNNAMED_BYTES = 512_000_000


class Recorder(Protocol):
    """Takes what a scan receives.  ``problem`` and ``notice`` are sentences, or empty."""

    problem: str
    notice: str

    def message(self, data: bytes, table: ChannelTable) -> None:
        """Take a slice."""

    def facts(self, facts: Facts) -> None:
        """Take the facts of the host."""

    def note(self, note: dict[str, Any]) -> None:
        """Take a note."""


class NoRecording:
    """Keeps nothing."""

    problem = notice = ""

    def message(self, data: bytes, table: ChannelTable) -> None:
        """Do nothing."""

    def facts(self, facts: Facts) -> None:
        """Do nothing."""

    def note(self, note: dict[str, Any]) -> None:
        """Do nothing."""


class Recording:
    """The recording of a running scan: in ``path``, or in a file without a name.

    A file without a name (its only link is a descriptor of this process) leaves nothing behind,
    however the process ends.  A scan without an end must not fill the temporary directory: such a
    file ends at its limit, and ``notice`` says so.  Records that do not fit on a full disk are left
    out: ``problem`` describes the first such failure, ``left_out`` counts them.
    """

    def __init__(self, path: Path | None) -> None:
        self.problem = self.notice = ""
        self.left_out = 0
        self._name = str(path or "the temporary recording")
        self._unnamed: int | None = None
        try:
            if path is None:
                self._unnamed, self.path = _unnamed_file()
                file = io.FileIO(os.dup(self._unnamed), "w")
                self._writer = RecordingWriter(self.path, file)
            else:
                self.path = path
                self._writer = RecordingWriter(path)
        except OSError as error:
            self._close_unnamed()
            remedy = ": set TMPDIR to a directory with room" if path is None else ""
            raise CliError(f"cannot write {self._name}: {error.strerror}{remedy}") from None

    def message(self, data: bytes, table: ChannelTable) -> None:
        if not self._is_full():
            with self._failures_counted():
                self._writer.message(data, table)

    def facts(self, facts: Facts) -> None:
        if not self._is_full():
            with self._failures_counted():
                self._writer.facts(facts.to_json())

    def note(self, note: dict[str, Any]) -> None:
        if not self._is_full():
            with self._failures_counted():
                self._writer.note(note)

    def close(self) -> None:
        with self._failures_counted():
            self._writer.close()
        self._close_unnamed()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _is_full(self) -> bool:
        if self._unnamed is None or self._writer.size < MOST_UNNAMED_BYTES:
            return False
        self.notice = self.notice or (
            f"the temporary recording has reached {MOST_UNNAMED_BYTES / 1e6:.0f} MB: what follows"
            " is judged second by second only; with --output DIR all of it is recorded"
        )
        return True

    @contextlib.contextmanager
    def _failures_counted(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.left_out += 1
            self.problem = self.problem or (
                f"cannot write {self._name} ({error.strerror}):"
                " the scan continues, its recording is incomplete"
            )

    def _close_unnamed(self) -> None:
        if self._unnamed is not None:
            os.close(self._unnamed)
            self._unnamed = None


class Slices:
    """Iterates over the slices of a recording in a file, or of ``data`` if that is given.

    ``notes`` and ``facts`` are filled while iterating; facts have the start of the slice before
    them (0 without one).  Raises ``CliError`` where the file cannot be read or is damaged.  After
    the iteration ``truncated`` is true for a file that is incomplete and was read up to its end.
    """

    def __init__(self, path: Path, data: bytes | None = None) -> None:
        self.notes: list[dict[str, Any]] = []
        self.facts: list[tuple[Facts, int]] = []
        self._reader = RecordingReader(path, data)

    @property
    def truncated(self) -> bool:
        return self._reader.truncated

    def subjects(self, node: str) -> list[Identity]:
        """Return the node's subjects, as far as the recording has been read.

        Raises ``CliError`` for a malformed note.
        """
        own = (note for note in self.notes if "subjects" in note and note.get("node") == node)
        return subjects_of_notes(own, self._reader.path)

    def shares(self, node: str) -> CpuShares:
        """Return the CPU shares of the node's subjects, likewise; equal ones without a note."""
        rows = [n[CPU_SHARES] for n in self.notes if CPU_SHARES in n and n.get("node") == node]
        try:
            return CpuShares.from_rows(rows[-1]) if rows else EQUAL_SHARES
        except SharesError as error:
            raise CliError(f"{self._reader.path}: {error}") from None

    def __iter__(self) -> Iterator[tuple[Message, ChannelTable]]:
        self.notes.clear()
        self.facts.clear()
        last_ns = 0
        for number, record in enumerate(self._records()):
            if record.note is not None:
                self.notes.append(record.note)
            elif record.facts is not None:
                self.facts.append((record.facts, last_ns))
            elif record.table is not None:
                try:
                    message = decode(record.data, gauges(record.table))
                except WireError as error:
                    raise CliError(f"{self._reader.path}: record {number}: {error}") from None
                last_ns = message.start_ns
                yield message, record.table

    def _records(self) -> Iterator[RecordingEntry]:
        with readable(self._reader.path):
            yield from self._reader


def subjects_of_notes(notes: Iterable[dict[str, Any]], path: Path) -> list[Identity]:
    """Return the subjects in notes of a node, the last of each; raises ``CliError``."""
    known: dict[tuple[str, str], Identity] = {}
    try:
        for note in notes:
            known |= {(row.instance, row.uid): row for row in from_rows(note["subjects"])}
    except SubjectsError as error:
        raise CliError(f"{path}: {error}") from None
    return list(known.values())


@contextlib.contextmanager
def readable(path: Path) -> Iterator[None]:
    """Raise ``CliError`` for a recording that is damaged or cannot be read."""
    try:
        yield
    except RecordingError as error:
        raise CliError(str(error)) from None
    except OSError as error:
        raise CliError(f"cannot read {path}: {error.strerror}") from None


def _unnamed_file() -> tuple[int, Path]:
    with tempfile.TemporaryFile(prefix="reveal-") as file:
        descriptor = os.dup(file.fileno())
    return descriptor, Path(f"/proc/self/fd/{descriptor}")
