"""Text files as they are opened: UTF-8 and UTF-16, plain and compressed."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from reveal_analyzer.tables.ingest import open as module
from reveal_analyzer.tables.ingest.open import FileKind, TableFileError, kind_of, open_text
from reveal_analyzer.tables.ingest.reader import read
from support.table_files import Write, lone

PACKERS = [gzip.compress, zstandard.ZstdCompressor().compress, bz2.compress, lzma.compress]
TEXT = "time,µs busy\n" + "".join(f"2026-11-21 10:{n:02d}:00,{n}.5\n" for n in range(60))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("pack", [bytes, *PACKERS])
def test_utf16_is_read_with_and_without_a_mark(write: Write, encoding: str, pack: object) -> None:
    assert callable(pack)
    path = write(pack(TEXT.encode(encoding)))
    assert kind_of(path) is FileKind.TEXT
    with open_text(path) as file:
        assert file.read() == TEXT.encode()
    assert lone(read(path)).names == ("µs busy",)


def test_a_line_that_needs_all_memory_is_refused(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1.4 MB of gzip had a field of 300 MB, which took 1.6 GB to read."""
    monkeypatch.setattr(module, "LONGEST_LINE", 1 << 20)
    text = TEXT + "2026-11-21 11:00:00," + "1" * (2 << 20) + "\n"
    with pytest.raises(TableFileError, match="a line has over 1 MiB"):
        read(write(gzip.compress(text.encode())))


def test_utf16_that_ends_within_a_character_is_read(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(TEXT.encode("utf-16")[:-1])
    with open_text(path) as file:
        assert file.read().decode()[:-1] == TEXT[:-1]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('<?xml version="1.0" ?>\n<nvidia_smi_log>', "is XML or HTML.*--query-gpu"),
        ("<html><body>", "is XML or HTML"),
        ("\n=====NVSMI LOG=====\n\nTimestamp : Sat", "what `nvidia-smi -q` writes.*--query-gpu"),
        (
            '# TYPE node_load1 gauge\nnode_load1{instance="n1"} 1\n',
            "answers to a scrape.*query_range",
        ),
        ("# HELP up x\n# TYPE up gauge\nup 1\n", "answers to a scrape"),
    ],
)
def test_what_is_no_table_is_refused_with_what_to_ask_for(
    write: Write, content: str, message: str
) -> None:
    with pytest.raises(TableFileError, match=message):
        kind_of(write(content))


def test_other_bytes_with_zeros_are_no_text(write: Write) -> None:
    with pytest.raises(TableFileError, match="neither a recording"):
        kind_of(write(b"\x7fELF\x02\x01\x01" + bytes(400)))


@pytest.mark.parametrize("pack", PACKERS)
def test_a_truncated_file_is_refused(write: Write, pack: Callable[[bytes], bytes]) -> None:
    path = write(pack(TEXT.encode() * 50)[:-20])
    with pytest.raises(TableFileError, match="damaged or cut off"):
        read(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PK\x03\x04" + bytes(60), "a ZIP archive or a spreadsheet: .* as CSV"),
        (b"\x89HDF\r\n\x1a\n" + bytes(60), "is HDF5, which is not read: write CSV"),
        (b"SQLite format 3\0" + bytes(60), "a database of SQLite: write CSV"),
        (b"ARROW1\0\0" + bytes(60), "an Arrow file, which is not read: write Parquet"),
        (b"AAA,progname,nmon\nAAA,host,n1\n", "a file of nmon, .*: write each to a table"),
    ],
)
def test_other_files_of_tables_are_refused_with_what_to_write(
    write: Write, content: bytes, message: str
) -> None:
    with pytest.raises(TableFileError, match=message):
        kind_of(write(content))


@pytest.mark.parametrize("pack", PACKERS)
def test_a_file_that_would_fill_a_memory_is_refused(
    write: Write, pack: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_FREE_BYTES", 1 << 20)
    monkeypatch.setattr(module, "_MOST_RATIO", 200)
    path = write(pack(b"time,a\n" + b"1,0\n" * (4 << 20)))
    with pytest.raises(TableFileError, match="times as large as the file: unpack it yourself"):
        read(path)
    small = write(pack(b"time,a\n" + b"".join(b"%d,0\n" % n for n in range(1000))))
    assert lone(read(small)).names == ("a",)
