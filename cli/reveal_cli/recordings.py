"""Recordings as the commands use them: written while watching, read slice by slice."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from reveal_contract.channels import ChannelTable
from reveal_contract.metric import Kind
from reveal_contract.recording import Reader, Record, RecordingError, Writer
from reveal_contract.wire import Message, WireError, decode

from reveal_cli.exits import CliError


class Recording:
    """The recording of a running scan: in ``path``, or in a file without a name.

    A file without a name (its only link is our descriptor) leaves nothing behind however
    the process ends.  When the disk is full the first failure is kept in ``problem`` and
    nothing more is written, as a record cut off in the middle ends a recording.
    """

    def __init__(self, path: Path | None) -> None:
        self.problem = ""
        self._name = str(path or "the temporary recording")
        self._unnamed: int | None = None
        self._writer: Writer | None = None
        try:
            if path is None:
                self._unnamed, path = _unnamed_file()
            self.path = path
            self._writer = Writer(path)
        except OSError as error:
            self.close()
            raise CliError(f"cannot write {self._name}: {error.strerror}") from None

    def message(self, data: bytes, table: ChannelTable) -> None:
        if self._writer is not None:
            try:
                self._writer.message(data, table)
            except OSError as error:
                self._give_up(error)

    def note(self, note: dict[str, Any]) -> None:
        if self._writer is not None:
            try:
                self._writer.note(note)
            except OSError as error:
                self._give_up(error)

    def finish(self) -> None:
        """End the writing; the file can be read until ``close``."""
        writer, self._writer = self._writer, None
        if writer is not None:
            with contextlib.suppress(OSError):  # already told: what is flushed last failed first
                writer.close()

    def close(self) -> None:
        self.finish()
        if self._unnamed is not None:
            os.close(self._unnamed)
            self._unnamed = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    def _give_up(self, error: OSError) -> None:
        self.problem = (
            f"cannot write {self._name} any more ({error.strerror}):"
            " the scan goes on, its recording ends here"
        )
        self.finish()


class Slices:
    """Iterates over the slices of a recording; ``notes`` fill up as they are met.

    Raises ``CliError`` where the file cannot be read or is damaged; ``truncated`` is true
    afterwards if the file was cut off (it is then read up to there).
    """

    def __init__(self, path: Path) -> None:
        self.notes: list[dict[str, Any]] = []
        self._reader = Reader(path)

    @property
    def truncated(self) -> bool:
        return self._reader.truncated

    def __iter__(self) -> Iterator[tuple[Message, ChannelTable]]:
        self.notes.clear()
        for number, record in enumerate(self._records()):
            if record.note is not None:
                self.notes.append(record.note)
            elif record.table is not None:
                try:
                    yield decode(record.data, _gauges(record.table)), record.table
                except WireError as error:
                    raise CliError(f"{self._reader.path}: record {number}: {error}") from None

    def _records(self) -> Iterator[Record]:
        try:
            yield from self._reader
        except RecordingError as error:
            raise CliError(str(error)) from None
        except OSError as error:
            raise CliError(f"cannot read {self._reader.path}: {error.strerror}") from None


def _gauges(table: ChannelTable) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return np.array([channel.kind is not Kind.COUNTER for channel in table.fast], np.bool_)


def _unnamed_file() -> tuple[int, Path]:
    with tempfile.TemporaryFile(prefix="reveal-") as file:
        descriptor = os.dup(file.fileno())
    return descriptor, Path(f"/proc/self/fd/{descriptor}")
