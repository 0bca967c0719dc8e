"""Recordings as the commands write and read them, also on a full disk and when damaged."""

import errno
import os
from pathlib import Path

import pytest

from reveal_cli import recordings
from reveal_cli.__main__ import main
from reveal_cli.errors import ERROR, CliError
from reveal_cli.recordings import Recording, Slices
from reveal_contract.cpu_shares import EQUAL_SHARES, CpuGroup, CpuShares
from reveal_contract.names import CPU_SHARES
from reveal_contract.recording import RecordingWriter
from reveal_contract.wire import encode, gauges
from support.redis_streams import TABLE, message


def wire(sequence: int) -> bytes:
    return encode(message("n", sequence), gauges(TABLE))


def fail_full(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_recording_without_a_name_is_read_back_and_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with Recording(None) as recording:
        for sequence in (1, 2):
            recording.message(wire(sequence), TABLE)
        recording.note({"a": 1})
        slices = Slices(recording.path)
        assert [read.sequence for read, _ in slices] == [1, 2]
        assert slices.notes == [{"a": 1}]
        assert list(tmp_path.iterdir()) == []


def test_the_cpu_shares_of_a_node_are_those_of_its_last_note(tmp_path: Path) -> None:
    first, second = (CpuShares((CpuGroup("/a", weight=weight),)) for weight in (2.0, 4.0))
    with Recording(tmp_path / "r.rvl") as recording:
        for sequence, shares in enumerate((None, first, second)):
            if shares is not None:
                recording.note({"node": "n", CPU_SHARES: shares.to_rows()})
                recording.note({"node": "other", CPU_SHARES: EQUAL_SHARES.to_rows()})
            recording.message(wire(sequence), TABLE)
    slices = Slices(tmp_path / "r.rvl")
    assert [slices.shares("n") for _ in slices] == [EQUAL_SHARES, first, second]
    slices.notes.append({"node": "n", CPU_SHARES: []})
    with pytest.raises(CliError, match=r"r\.rvl: CPU shares: "):
        slices.shares("n")


def test_a_recording_without_a_name_has_a_limit_and_keeps_its_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recordings, "MOST_UNNAMED_BYTES", 10_000)
    with Recording(None) as unnamed, Recording(tmp_path / "r.rvl") as named:
        for sequence in range(500):
            unnamed.message(wire(sequence), TABLE)
            unnamed.note({"a": sequence})
            named.message(wire(sequence), TABLE)
        kept = [read.sequence for read, _ in Slices(unnamed.path)]
        assert 0 < len(kept) < 400
        assert kept == list(range(len(kept)))
        assert unnamed.path.stat().st_size < 11_000
        assert "with --output DIR all of it is recorded" in unnamed.notice
        assert (unnamed.problem, unnamed.left_out, named.notice) == ("", 0, "")
        assert len(list(Slices(named.path))) == 500


def test_without_a_directory_for_temporary_files_the_error_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def none(**_: object) -> None:
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp']")

    monkeypatch.setattr("tempfile.TemporaryFile", none)
    with pytest.raises(CliError, match=r"temporary recording: No usable .* set TMPDIR"):
        Recording(None)


def test_a_full_disk_is_reported_once_and_loses_only_what_does_not_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Recording(tmp_path / "r.rvl") as recording:
        recording.message(wire(1), TABLE)
        with monkeypatch.context() as full:
            full.setattr(RecordingWriter, "message", fail_full)
            recording.message(wire(2), TABLE)
            problem = recording.problem
            recording.message(wire(3), TABLE)
        recording.message(wire(4), TABLE)
    assert "No space left on device" in problem
    assert (recording.problem, recording.left_out) == (problem, 2)
    assert [read.sequence for read, _ in Slices(tmp_path / "r.rvl")] == [1, 4]


def test_a_damaged_message_is_reported_in_a_sentence(tmp_path: Path) -> None:
    with RecordingWriter(tmp_path / "r.rvl") as writer:
        writer.message(wire(1)[:-1] + b"\0", TABLE)
    with pytest.raises(CliError, match="checksum"):
        list(Slices(tmp_path / "r.rvl"))


@pytest.mark.parametrize("content", [b"", b"no recording", b"RVLREC\x00\x01M\x00\x00\x00\x00abcd"])
def test_analyze_reports_a_file_that_it_cannot_read(
    tmp_path: Path, content: bytes, capsys: pytest.CaptureFixture[str], own_signals: None
) -> None:
    path = tmp_path / "bad.rvl"
    path.write_bytes(content)
    assert main(["analyze", str(path)]) == ERROR
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert str(path) in error


def test_analyze_of_a_file_that_does_not_exist(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], own_signals: None
) -> None:
    assert main(["analyze", str(tmp_path / "none.rvl")]) == ERROR
    assert "No such file" in capsys.readouterr().err
