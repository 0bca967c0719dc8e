"""Recordings: the messages of one or more nodes and their channel tables, as sent, in a file.

Layout: 8 bytes magic with a version, then records ``kind (1) | length (4) | crc32 (4) |
payload``; kind ``T`` is an announced channel table, ``M`` a wire message, ``N`` a note (JSON),
``F`` a node's facts (JSON), wherever they changed.  A table comes before the first message that
needs it.  A file that ends in the middle of a record (disk full, power lost) is read up to there.
"""

from __future__ import annotations

import errno
import io
import json
import os
import stat
import struct
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from reveal_contract import foreign_json
from reveal_contract.channels import ChannelTable, TableError
from reveal_contract.facts import Facts, FactsError
from reveal_contract.skipped_channels import log_skipped

MAGIC = b"RVLREC\x00\x01"
_RECORD = struct.Struct("<cII")
_MAX_RECORD = 64 << 20
_KEY_BYTES = 8  # of a channel table


class RecordingError(ValueError):
    """The file is not a recording, or is damaged; the text says where."""


@dataclass(frozen=True)
class RecordingEntry:
    """One entry: a wire message with its table, a note, or facts; the others are not set.

    ``position`` is the byte of the file that a message begins with, for ``read_message``.
    """

    data: bytes = b""
    table: ChannelTable | None = None
    note: dict[str, Any] | None = None
    facts: Facts | None = None
    position: int = field(default=0, compare=False)


class _Records(ABC):
    """The records of a recording, in their order; ``_append`` takes their bytes."""

    def __init__(self) -> None:
        self._tables: set[bytes] = set()

    def message(self, data: bytes, table: ChannelTable) -> None:
        """Append a message, and its table where that is new."""
        if table.key not in self._tables:
            self._put(b"T", table.to_json())
            self._tables.add(table.key)
        self._put(b"M", table.key + data)

    def note(self, note: dict[str, Any]) -> None:
        """Append a note."""
        self._put(b"N", json.dumps(note, sort_keys=True).encode())

    def facts(self, facts: bytes) -> None:
        """Append facts, as ``Facts.to_json`` returns them."""
        self._put(b"F", facts)

    def _put(self, kind: bytes, payload: bytes) -> None:
        self._append(_RECORD.pack(kind, len(payload), zlib.crc32(payload)) + payload)

    @abstractmethod
    def _append(self, data: bytes) -> None:
        """Add bytes at the end."""


class RecordingBuffer(_Records):
    """A recording in memory."""

    def __init__(self) -> None:
        super().__init__()
        self._data = bytearray(MAGIC)

    def to_bytes(self) -> bytes:
        """Return the recording."""
        return bytes(self._data)

    def _append(self, data: bytes) -> None:
        self._data += data


class RecordingWriter(_Records):
    """Appends to a new recording; each call leaves a readable file behind.

    A call that fails (full disk) raises ``OSError`` and adds nothing.  Without a ``file`` that is
    open already, ``path`` is written by ``open_own``.
    """

    def __init__(self, path: Path, file: io.FileIO | None = None) -> None:
        super().__init__()
        self.path = path
        self._file = open_own(path) if file is None else file
        self._end = 0
        self._append(MAGIC)

    @property
    def size(self) -> int:
        """Return the bytes written."""
        return self._end

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _append(self, data: bytes) -> None:
        try:
            left = memoryview(data)
            while left:
                left = left[self._file.write(left) :]
        except OSError:
            self._file.truncate(self._end)  # an incomplete record would break the next ones
            self._file.seek(self._end)
            raise
        self._end += len(data)


def open_own(path: Path) -> io.FileIO:
    """Open a file of this user to write it again; raises ``OSError`` for a link or another's file.

    Between the check that a name is free and this call, who may write to the folder can put
    something else there, and root could write to any file.
    """
    flags = os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        number = os.open(path, flags, 0o666)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise OSError(errno.ELOOP, "it is a link: name the file itself", str(path)) from None
    # unbuffered: a buffer would keep what could not be written, and fail again at close
    file = io.FileIO(number, "w")
    try:
        _refuse_foreign(path, os.fstat(number))
        if stat.S_ISREG(os.fstat(number).st_mode):
            file.truncate()
    except OSError:
        file.close()
        raise
    return file


def _refuse_foreign(path: Path, found: os.stat_result) -> None:
    """Raise ``OSError`` unless it is a device, or a file of this user with a single name."""
    if stat.S_ISCHR(found.st_mode):  # /dev/null; only root creates devices
        return
    owners = {os.geteuid()}
    if os.geteuid() == 0:
        owners.add(int(os.environ.get("SUDO_UID") or 0))
    if not stat.S_ISREG(found.st_mode) or found.st_uid not in owners or found.st_nlink > 1:
        raise OSError(errno.EPERM, "it is not a file of this user alone", str(path))


class RecordingReader:
    """Iterates over the records of a file, or of ``data`` if that is given.

    ``truncated`` is true after the iteration if the last record was cut off.  Raises
    ``RecordingError`` where the file is no recording or a record is damaged.
    """

    def __init__(self, path: Path, data: bytes | None = None) -> None:
        self.path = path
        self.truncated = False
        self._data = data

    def __iter__(self) -> Iterator[RecordingEntry]:
        tables: dict[bytes, ChannelTable] = {}
        with self.open() as file:
            if file.read(len(MAGIC)) != MAGIC:
                raise RecordingError(f"{self.path} is not a recording made by reveal")
            position = file.tell()
            while (entry := self._next(file)) is not None:
                kind, payload = entry
                if kind == b"T":
                    self._learn(tables, payload)
                elif kind == b"N":
                    yield RecordingEntry(note=self._note(payload))
                elif kind == b"F":
                    yield RecordingEntry(facts=self._facts(payload))
                else:
                    table = self._table(tables, payload[:_KEY_BYTES])
                    yield RecordingEntry(payload[_KEY_BYTES:], table, position=position)
                position = file.tell()

    def read_message(self, file: BinaryIO, position: int) -> tuple[bytes, bytes]:
        """Return the key of the table and the message of an entry; raises ``RecordingError``."""
        file.seek(position)
        kind, payload = self._next(file) or (b"", b"")
        if kind != b"M":
            raise RecordingError(f"{self.path} has no message from byte {position} on any more")
        return payload[:_KEY_BYTES], payload[_KEY_BYTES:]

    def open(self) -> BinaryIO:
        """Open the file."""
        return self.path.open("rb") if self._data is None else io.BytesIO(self._data)

    def _next(self, file: BinaryIO) -> tuple[bytes, bytes] | None:
        position = file.tell()
        head = file.read(_RECORD.size)
        if len(head) < _RECORD.size:
            self.truncated = bool(head)
            return None
        kind, length, crc = _RECORD.unpack(head)
        if kind not in (b"T", b"M", b"N", b"F") or length > _MAX_RECORD:
            raise RecordingError(f"{self.path} is damaged at byte {position}")
        payload = file.read(length)
        if len(payload) < length:
            self.truncated = True
            return None
        if zlib.crc32(payload) != crc:
            raise RecordingError(
                f"{self.path} is damaged at byte {position}: checksum does not match"
            )
        return kind, payload

    def _learn(self, tables: dict[bytes, ChannelTable], payload: bytes) -> None:
        try:
            table = ChannelTable.from_json(payload)
        except TableError as error:
            raise RecordingError(f"{self.path}: {error}") from None
        log_skipped(table)
        tables[table.key] = table

    def _table(self, tables: dict[bytes, ChannelTable], key: bytes) -> ChannelTable:
        if key not in tables:
            raise RecordingError(f"{self.path}: no channel table {key.hex()} before its message")
        return tables[key]

    def _note(self, payload: bytes) -> dict[str, Any]:
        try:
            note = foreign_json.loads(payload)
        except ValueError:
            raise RecordingError(f"{self.path}: a note is not JSON") from None
        if not isinstance(note, dict):
            raise RecordingError(f"{self.path}: a note is not a JSON object")
        return note

    def _facts(self, payload: bytes) -> Facts:
        try:
            return Facts.from_json(payload)
        except FactsError as error:
            raise RecordingError(f"{self.path}: {error}") from None
