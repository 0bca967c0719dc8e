"""Recordings keep messages as sent, are readable up to a truncation, and report damage."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.recording import (
    MAGIC,
    RecordingBuffer,
    RecordingEntry,
    RecordingError,
    RecordingReader,
    RecordingWriter,
)

FIRST_TABLE = ChannelTable((Channel("a.one"),), ())
SECOND_TABLE = ChannelTable((Channel("a.two"),), ())
NOTE = {"fault": "cpu", "at": 5}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "r.rvl"
    with RecordingWriter(path) as writer:
        writer.message(b"first", FIRST_TABLE)
        writer.note(NOTE)
        writer.message(b"second", SECOND_TABLE)
        writer.message(b"third", FIRST_TABLE)
    return path


EXPECTED = [
    RecordingEntry(b"first", FIRST_TABLE),
    RecordingEntry(note=NOTE),
    RecordingEntry(b"second", SECOND_TABLE),
    RecordingEntry(b"third", FIRST_TABLE),
]


def read(path: Path) -> tuple[list[RecordingEntry], bool]:
    reader = RecordingReader(path)
    return list(reader), reader.truncated


def test_a_recording_in_memory_has_the_bytes_of_the_file_and_is_read_alike(path: Path) -> None:
    buffer = RecordingBuffer()
    buffer.message(b"first", FIRST_TABLE)
    buffer.note(NOTE)
    buffer.message(b"second", SECOND_TABLE)
    buffer.message(b"third", FIRST_TABLE)
    assert buffer.to_bytes() == path.read_bytes()
    reader = RecordingReader(Path("memory"), buffer.to_bytes()[:-3])
    assert list(reader) == EXPECTED[:-1]
    assert reader.truncated
    with pytest.raises(RecordingError, match="memory is not a recording"):
        list(RecordingReader(Path("memory"), b""))


def test_what_is_written_comes_back_in_order(path: Path) -> None:
    assert read(path) == (EXPECTED, False)


def test_a_reader_can_be_read_again(path: Path) -> None:
    reader = RecordingReader(path)
    assert list(reader) == list(reader) == EXPECTED


def test_a_table_is_written_once(path: Path) -> None:
    assert path.read_bytes().count(b"a.one") == 1


def test_each_call_leaves_a_readable_file(tmp_path: Path) -> None:
    writer = RecordingWriter(tmp_path / "r.rvl")
    assert read(writer.path) == ([], False)
    writer.message(b"first", FIRST_TABLE)
    assert read(writer.path) == (EXPECTED[:1], False)
    writer.close()


def test_a_truncated_file_is_read_up_to_its_end(path: Path) -> None:
    data = path.read_bytes()
    observed = set()
    for length in range(len(MAGIC), len(data)):
        path.write_bytes(data[:length])
        records, truncated = read(path)
        assert records == EXPECTED[: len(records)]
        observed.add((len(records), truncated))
    assert {(number, True) for number in range(4)} <= observed
    assert (4, False) not in observed


@pytest.mark.parametrize("data", [b"", b"RVLREC", b"PK\3\4" + bytes(50), b"RVLREC\x00\x02" + b"M"])
def test_a_file_of_another_format_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "x"
    path.write_bytes(data)
    with pytest.raises(RecordingError, match="not a recording"):
        read(path)


def test_a_changed_byte_is_detected_or_ends_the_file(path: Path) -> None:
    """Only a changed length can pass for a truncation; every record that is read is correct."""
    data = bytearray(path.read_bytes())
    refused = 0
    for index in range(len(MAGIC), len(data)):
        data[index] ^= 0x41
        path.write_bytes(data)
        try:
            records, truncated = read(path)
        except RecordingError as error:
            assert str(path) in str(error)
            refused += 1
        else:
            assert truncated
            assert records == EXPECTED[: len(records)]
        data[index] ^= 0x41
    assert refused > 0.8 * (len(data) - len(MAGIC))


def _forged(tmp_path: Path, kind: bytes, payload: bytes) -> Path:
    writer = RecordingWriter(tmp_path / "r.rvl")
    writer._put(kind, payload)
    writer.close()
    return writer.path


@pytest.mark.parametrize(
    ("kind", "payload", "message"),
    [
        (b"M", FIRST_TABLE.key + b"data", "no channel table"),
        (b"M", b"", "no channel table"),
        (b"T", b"no table", "channel table is not JSON"),
        (b"N", b"{", "not JSON"),
        (b"N", b"[" * 100_000, "not JSON"),
        (b"N", b"[]", "not a JSON object"),
        (b"X", b"", "damaged at byte 8"),
    ],
)
def test_an_invalid_record_raises_an_error(
    tmp_path: Path, kind: bytes, payload: bytes, message: str
) -> None:
    with pytest.raises(RecordingError, match=message):
        read(_forged(tmp_path, kind, payload))


@given(st.binary(max_size=200))
def test_random_bytes_never_crash(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "random.rvl"
    path.write_bytes(MAGIC + data)
    reader = RecordingReader(path)
    try:
        assert len(list(reader)) * 9 <= len(data)
    except RecordingError as error:
        assert "random.rvl" in str(error)


class FullFile:
    """A file on a disk with so much room left, then full, then with room again."""

    def __init__(self, file: Any, room: int) -> None:
        self._file, self.room = file, room

    def write(self, data: memoryview) -> int:
        if not self.room:
            raise OSError(28, "No space left on device")
        taken = self._file.write(data[: self.room])
        self.room -= taken
        assert isinstance(taken, int)
        return taken

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@pytest.mark.parametrize("room", [0, 1, 12, 60])
def test_a_full_disk_leaves_whole_records_and_can_go_on(tmp_path: Path, room: int) -> None:
    writer = RecordingWriter(tmp_path / "r.rvl")
    writer.message(b"first", FIRST_TABLE)
    writer._file = FullFile(writer._file, room)  # type: ignore[assignment]
    with pytest.raises(OSError, match="No space"):
        writer.note({"long": "x" * 100})
    assert read(writer.path) == (EXPECTED[:1], False)
    writer._file.room = 1 << 20  # type: ignore[attr-defined]
    writer.note(NOTE)
    assert read(writer.path) == (EXPECTED[:2], False)
    writer.close()


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file that no recording may change."""
    path = tmp_path / "secret"
    path.write_bytes(b"precious")
    return path


@pytest.mark.parametrize("is_there", [True, False])
def test_no_link_is_followed(tmp_path: Path, secret: Path, is_there: bool) -> None:
    """The name was free when it was claimed: whoever may write to the folder put a link there."""
    target = secret if is_there else tmp_path / "none"
    (tmp_path / "r.rvl").symlink_to(target)
    with pytest.raises(OSError, match="it is a link"):
        RecordingWriter(tmp_path / "r.rvl")
    assert secret.read_bytes() == b"precious"
    assert target.exists() == is_there


def test_no_file_with_another_name_is_changed(tmp_path: Path, secret: Path) -> None:
    (tmp_path / "r.rvl").hardlink_to(secret)
    with pytest.raises(OSError, match="not a file of this user alone"):
        RecordingWriter(tmp_path / "r.rvl")
    assert secret.read_bytes() == b"precious"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can write to files of others")
def test_no_file_of_another_user_is_changed(secret: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SUDO_UID", raising=False)
    os.chown(secret, 4242, 4242)
    with pytest.raises(OSError, match="not a file of this user alone"):
        RecordingWriter(secret)
    assert secret.read_bytes() == b"precious"
    monkeypatch.setenv("SUDO_UID", "4242")  # a disk on which all files are of this user
    RecordingWriter(secret).close()
    assert secret.read_bytes() == MAGIC


def test_a_pipe_holds_nothing_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "r.rvl")
    with pytest.raises(OSError, match=r"r\.rvl"):
        RecordingWriter(tmp_path / "r.rvl")


def test_an_own_file_is_written_again_and_a_device_can_take_a_recording(secret: Path) -> None:
    RecordingWriter(secret).close()
    assert secret.read_bytes() == MAGIC
    RecordingWriter(Path(os.devnull)).close()
