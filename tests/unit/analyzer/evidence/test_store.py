"""The folder of samples; the store in Redis is tested on a real one (integration)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from reveal_analyzer.evidence.store import MOST_FINDINGS, FolderEvidence, load_evidence
from support.fake_clock import FakeClock


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_folder_has_a_recording_for_each_finding(tmp_path: Path) -> None:
    store = FolderEvidence(tmp_path / "new", 600)
    store.put("cpu-1", b"first", {"finding": {"id": "cpu-1"}})
    assert store.unfinished() == {"cpu-1": {"finding": {"id": "cpu-1"}}}
    store.put("cpu-1", b"second", None)
    assert store.unfinished() == {}
    assert load_evidence(store, "cpu-1") == b"second"
    assert names(tmp_path / "new") == {"cpu-1.rvl"}


@pytest.mark.parametrize("name", ["cpu-2", "../cpu-1", "", "a" * 200])
def test_what_is_not_kept_is_not_found(tmp_path: Path, name: str) -> None:
    store = FolderEvidence(tmp_path / "inner", 600)
    store.put("cpu-1", b"first", None)
    (tmp_path / "cpu-1.rvl").write_bytes(b"outside")
    with pytest.raises(KeyError):
        load_evidence(store, name)


def test_the_oldest_findings_and_those_over_their_time_are_deleted(tmp_path: Path) -> None:
    clock = FakeClock()
    store = FolderEvidence(tmp_path, 600, clock)
    for number in range(MOST_FINDINGS + 1):
        file = tmp_path / f"cpu-{number}.rvl"
        file.write_bytes(b"")
        os.utime(file, (clock.now + number, clock.now + number))
    (tmp_path / "cpu-0.unfinished").write_bytes(b"{}")
    store.put("memory-1", b"", None)
    left = names(tmp_path)
    assert len(left) == MOST_FINDINGS
    assert not left & {"cpu-0.rvl", "cpu-1.rvl", "cpu-0.unfinished"}
    clock.now += 600 + 10
    store.put("memory-2", b"", None)
    assert not names(tmp_path) & {"cpu-9.rvl"}
    assert "cpu-10.rvl" in names(tmp_path)


def test_a_full_disk_keeps_the_earlier_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = FolderEvidence(tmp_path, 600)
    store.put("cpu-1", b"first", None)

    def full(path: Path, data: bytes) -> int:
        path.touch()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space"):
        store.put("cpu-1", b"second", None)
    assert store.get("cpu-1") == b"first"
    assert names(tmp_path) == {"cpu-1.rvl"}


def test_analyzers_of_the_same_process_id_write_different_temporary_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In containers that share the folder each is process 1."""
    written: list[Path] = []
    write_bytes = Path.write_bytes

    def listed(path: Path, data: bytes) -> int:
        written.append(path)
        return write_bytes(path, data)

    monkeypatch.setattr(Path, "write_bytes", listed)
    for _ in range(2):
        FolderEvidence(tmp_path, 600).put("cpu-1", b"", None)
    assert len(set(written)) == 2


def test_a_file_of_an_analyzer_that_was_killed_is_deleted_later(tmp_path: Path) -> None:
    clock = FakeClock()
    left = tmp_path / ".cpu-1.rvl.0.new"
    left.write_bytes(b"half")
    os.utime(left, (clock.now, clock.now))
    store = FolderEvidence(tmp_path, 86_400, clock)
    store.put("cpu-2", b"", None)
    assert left.exists()
    clock.now += 601
    store.put("cpu-2", b"", None)
    assert not left.exists()


def test_a_row_that_is_no_json_is_empty(tmp_path: Path) -> None:
    (tmp_path / "cpu-1.unfinished").write_bytes(b"[")
    assert FolderEvidence(tmp_path, 600).unfinished() == {"cpu-1": {}}
