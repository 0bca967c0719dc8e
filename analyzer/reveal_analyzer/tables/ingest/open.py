"""Detects the kind of a file from its first bytes, and opens text files as UTF-8.

Files may be compressed with gzip, zstd, bzip2 or xz, and written in UTF-16, with or without a mark
of the order of bytes.
"""

from __future__ import annotations

import bz2
import codecs
import contextlib
import gzip
import io
import lzma
import re
import zlib
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

import zstandard

from reveal_contract.recording import MAGIC

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

# RFC 1952, section 2.3.1; RFC 8878, section 3.1.1; Parquet: File Format
_GZIP, _ZSTD, _PARQUET = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PAR1"
_BZIP2, _XZ = b"BZh", b"\xfd7zXZ\0"
# other files of tables, by their first bytes
_OTHERS = {
    b"PK\x03\x04": "a ZIP archive or a spreadsheet: unpack it, or save its sheet as CSV",
    b"\xd0\xcf\x11\xe0": "a file of an office program: save its sheet as CSV",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive: unpack it",
    b"\x89HDF": "HDF5, which is not read: write CSV or Parquet, as `pandas.read_hdf` can",
    b"SQLite format 3\0": "a database of SQLite: write CSV, as `sqlite3 -header -csv` does",
    b"ARROW1": "an Arrow file, which is not read: write Parquet, as `pyarrow.parquet` does",
    b"ORC": "ORC, which is not read: write Parquet or CSV",
    b"Obj\x01": "Avro, which is not read: write Parquet or CSV",
    b"\x93NUMPY": "an array of numpy: write CSV with the names of its columns",
    b"%PDF": "PDF, which is no table: write CSV",
    b"AAA,progname": "a file of nmon, whose sections have columns of their own: write each to a"
    " table, with the times of its ZZZZ lines",
}
_UTF16 = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
_MOST_ZEROS = 0.9  # of every second byte: those of Latin text in UTF-16
_HEAD_BYTES = 4096
_PIECE = 1 << 14  # compressed bytes read at once: their content is in memory
_ZSTD_PIECE = 512  # likewise: a block of 128 KiB takes four bytes (RFC 8878, 3.1.1.2)
_BUFFER = 1 << 20
_FREE_BYTES = 64 << 20  # of content, from which its ratio to the file counts
_MOST_RATIO = 1000
LONGEST_LINE = 64 << 20
_EXPOSITION = re.compile(rb"^# (?:TYPE|HELP) [A-Za-z_:][\w:]* ", re.MULTILINE)
_QUERY_LOG = b"=NVSMI LOG="
_WRITE_CSV = (
    "write CSV, as `nvidia-smi --query-gpu=timestamp,index,utilization.gpu,power.draw --format=csv"
    " -l 1` does"
)


class TableFileError(ValueError):
    """A file cannot be used as a table; the message is one sentence with the reason."""


class FileKind(StrEnum):
    """Kinds of input files."""

    RECORDING = "recording"
    PARQUET = "Parquet"
    TEXT = "text"


def kind_of(path: Path) -> FileKind:
    """Return the kind of a file by content, never by name; unknown content is text.

    Raises ``TableFileError`` for content that is certainly none of the three.
    """
    with readable_errors(path), path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    if head.startswith(MAGIC[:6]):
        return FileKind.RECORDING
    if head.startswith(_PARQUET):
        return FileKind.PARQUET
    if other := next((what for magic, what in _OTHERS.items() if head.startswith(magic)), ""):
        raise TableFileError(f"{path} is {other}")
    encoding = _utf16(head)
    if encoding:
        head = head.decode(encoding, "replace").lstrip("\ufeff").encode()
    if head.lstrip().startswith((b"<?xml", b"<!DOCTYPE", b"<html", b"<nvidia_smi_log")):
        raise TableFileError(f"{path} is XML or HTML, which is no table: {_WRITE_CSV}")
    if _EXPOSITION.search(head):
        raise TableFileError(
            f"{path} is what a target of Prometheus answers to a scrape, no table: ask Prometheus"
            " for /api/v1/query_range, whose answer is read"
        )
    if _QUERY_LOG in head:
        raise TableFileError(f"{path} is what `nvidia-smi -q` writes, no table: {_WRITE_CSV}")
    if b"\0" in head and not head.startswith((_GZIP, _ZSTD, _BZIP2, _XZ)):
        raise TableFileError(
            f"{path} is neither a recording made by reveal nor a table (CSV or Parquet)"
        )
    return FileKind.TEXT


@contextlib.contextmanager
def open_text(path: Path) -> Iterator[io.BufferedReader]:
    """Open a text file as UTF-8, plain or compressed with gzip, zstd, bzip2 or xz."""
    with readable_errors(path), path.open("rb") as file, _unpacked(file) as content:
        encoding = _utf16(content.peek(_HEAD_BYTES)[:_HEAD_BYTES])
        yield io.BufferedReader(_Utf16Reader(content, encoding), _BUFFER) if encoding else content


@contextlib.contextmanager
def _unpacked(file: io.BufferedReader) -> Iterator[io.BufferedReader]:
    head = file.peek(8)
    if head.startswith((_GZIP, _BZIP2, _XZ)):
        with _decompressor(file, head) as unpacked:
            yield io.BufferedReader(_Bounded(cast(BinaryIO, unpacked), file), _BUFFER)
    elif head.startswith(_ZSTD):
        yield io.BufferedReader(_Bounded(cast(BinaryIO, _ZstdReader(file)), file), _BUFFER)
    else:
        yield file


def _decompressor(
    file: io.BufferedReader, head: bytes
) -> gzip.GzipFile | bz2.BZ2File | lzma.LZMAFile:
    if head.startswith(_GZIP):
        return gzip.GzipFile(fileobj=file)
    return bz2.BZ2File(file) if head.startswith(_BZIP2) else lzma.LZMAFile(file)


def _utf16(head: bytes) -> str:
    """Return the encoding of a text in UTF-16; "" for any other."""
    marked = _UTF16.get(head[:2], "")
    if marked or len(head) < 4:
        return marked
    for encoding, zeros, letters in (
        ("utf-16-le", head[1::2], head[::2]),
        ("utf-16-be", head[::2], head[1::2]),
    ):
        if zeros.count(0) >= _MOST_ZEROS * len(zeros) and not letters.count(0):
            return encoding
    return ""


class _Bounded(io.RawIOBase):
    """What a decompressor gives, unless it is made to fill a memory.

    Rows of numbers take a tenth of their size, and rows that are all the same a few hundredths.  A
    parser needs the memory of a line.
    """

    def __init__(self, unpacked: BinaryIO, packed: BinaryIO) -> None:
        self._unpacked, self._packed = unpacked, packed
        self._count = self._line = 0

    def readable(self) -> bool:
        return True

    def readinto(self, into: WriteableBuffer) -> int:
        data = self._unpacked.read(len(memoryview(into)))
        memoryview(into)[: len(data)] = data
        self._count += len(data)
        end = max(data.rfind(b"\n"), data.rfind(b"\r"))
        self._line = self._line + len(data) if end < 0 else len(data) - end - 1
        if self._line > LONGEST_LINE:
            raise TableFileError(
                f"{self._packed.name} is no table: a line has over {LONGEST_LINE >> 20} MiB"
            )
        if self._count > max(_FREE_BYTES, _MOST_RATIO * self._packed.tell()):
            raise TableFileError(
                f"the content of {self._packed.name} is over {_MOST_RATIO} times as large as the"
                " file: unpack it yourself if it is a table"
            )
        return len(data)


class _Utf16Reader(io.RawIOBase):
    """The content of a file in UTF-16 as UTF-8, without a mark of the order of bytes."""

    def __init__(self, file: BinaryIO, encoding: str) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder(encoding)("replace")
        self._begun = False
        self._ready = b""

    def readable(self) -> bool:
        return True

    def readinto(self, into: WriteableBuffer) -> int:
        target = memoryview(into)
        while not self._ready:
            piece = self._file.read(_PIECE)
            text = self._decoder.decode(piece, final=not piece)
            self._ready = (text if self._begun else text.lstrip("\ufeff")).encode(
                "utf-8", "replace"
            )
            self._begun = self._begun or bool(text)
            if not piece:
                break
        count = min(len(target), len(self._ready))
        target[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count


class _ZstdReader(io.RawIOBase):
    """The content of zstd frames; raises ``EOFError`` if the last one is truncated.

    The library's own stream ends there without an error, and half a table would be judged.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._frame = zstandard.ZstdDecompressor().decompressobj()
        self._begun = False
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, into: WriteableBuffer) -> int:
        target = memoryview(into)
        while not self._ready and self._read_piece():
            pass
        count = min(len(target), len(self._ready))
        target[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count

    def _read_piece(self) -> bool:
        """Decompress the next piece; return whether there was one."""
        packed = self._file.read(_ZSTD_PIECE)
        if not packed:
            if self._begun:
                raise EOFError("its last zstd frame does not end")
            return False
        parts = []
        while packed:
            parts.append(self._frame.decompress(packed))
            self._begun, packed = not self._frame.eof, self._frame.unused_data
            if not self._begun:
                self._frame = zstandard.ZstdDecompressor().decompressobj()
        self._ready = memoryview(b"".join(parts))
        return True


@contextlib.contextmanager
def readable_errors(path: Path) -> Iterator[None]:
    """Raise errors while a file is read as ``TableFileError`` with one sentence."""
    try:
        yield
    except (gzip.BadGzipFile, zlib.error, zstandard.ZstdError, lzma.LZMAError, EOFError) as error:
        raise TableFileError(f"{path} is damaged or cut off: {error}") from None
    except OSError as error:
        raise TableFileError(f"cannot read {path}: {error.strerror or error}") from None
