"""Text files as they are opened: UTF-8 and UTF-16, plain and compressed."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from reveal_analyzer.tables.ingest import open as module
from reveal_analyzer.tables.ingest.open import FileKind, TableFileError, kind_of, open_text
from reveal_analyzer.tables.ingest.reader import read
from support.table_files import Write, lone

TEXT = "time,µs busy\n" + "".join(f"2026-11-21 10:{n:02d}:00,{n}.5\n" for n in range(60))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstandard.ZstdCompressor().compress])
def test_utf16_is_read_with_and_without_a_mark(write: Write, encoding: str, pack: object) -> None:
    assert callable(pack)
    path = write(pack(TEXT.encode(encoding)))
    assert kind_of(path) is FileKind.TEXT
    with open_text(path) as file:
        assert file.read() == TEXT.encode()
    assert lone(read(path)).names == ("µs busy",)


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


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.ZstdCompressor().compress])
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
