"""The files of a scan: a directory of its own, each file complete."""

import errno
import json
import os
from pathlib import Path

import pytest

from reveal_cli.atomic_file import write_atomically
from reveal_cli.errors import CliError
from reveal_cli.output_files import FindingsFile, missing_sources
from reveal_cli.scan_directory import SCAN_FILES, claim_directory
from support.finding_factory import scan_finding


def fail_full(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_directory_belongs_to_the_first_scan(tmp_path: Path) -> None:
    claim_directory(tmp_path / "a" / "b")
    with pytest.raises(CliError, match="exists already"):
        claim_directory(tmp_path / "a" / "b")
    (tmp_path / "file").touch()
    with pytest.raises(CliError, match="is not a directory"):
        claim_directory(tmp_path / "file")


def test_a_file_is_replaced_completely_or_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "f"
    write_atomically(path, ["o", "ld"])
    with monkeypatch.context() as broken:
        broken.setattr(Path, "replace", fail_full)
        with pytest.raises(CliError, match="cannot write"):
            write_atomically(path, ["new"])
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["/dev/null", "/dev/full", "pipe"])
def test_a_device_or_pipe_is_written_and_never_replaced(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As root, ``--findings /dev/null`` would make it a file for everybody."""
    monkeypatch.setattr(Path, "replace", fail_full)
    path = tmp_path / name
    if name == "pipe":
        os.mkfifo(path)
        reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        write_atomically(path, ["text"])
        assert os.read(reader, 9) == b"text"
        os.close(reader)
    elif name == "/dev/full":
        with pytest.raises(CliError, match="cannot write /dev/full: No space left"):
            write_atomically(path, ["text"])
    else:
        write_atomically(path, ["text"])


def test_a_descriptor_gets_the_content_behind_what_it_has(tmp_path: Path) -> None:
    """As /dev/stdout that a shell sent to a file: that file is not replaced."""
    path = tmp_path / "out"
    with path.open("w") as file:
        file.write("before\n")
        file.flush()
        write_atomically(Path(f"/dev/fd/{file.fileno()}"), ["content\n"])
    assert path.read_text() == "before\ncontent\n"


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("file")
    write_atomically(tmp_path / "link", ["text"])
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "text"


def test_a_disk_that_turns_read_only_gives_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_only(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(Path, "replace", read_only)
    monkeypatch.setattr(Path, "unlink", read_only)
    with pytest.raises(CliError, match=r"cannot write .*: Read-only file system"):
        write_atomically(tmp_path / "f", ["text"])


@pytest.mark.parametrize("name", SCAN_FILES)
def test_a_scan_overwrites_no_file_of_another(tmp_path: Path, name: str) -> None:
    """``--output DIR --baseline DIR`` would replace the state that the scan starts from."""
    (tmp_path / name).write_text("precious")
    with pytest.raises(CliError, match=f"{name} exists already"):
        claim_directory(tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == [name]


def test_the_findings_file_is_complete_once_there_is_room_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = FindingsFile(tmp_path / "f.jsonl")
    file.write([])
    assert (tmp_path / "f.jsonl").read_text() == ""
    with monkeypatch.context() as full:
        full.setattr(Path, "replace", fail_full)
        with pytest.raises(CliError):
            file.write([scan_finding()])
        file.write([scan_finding()])  # nothing new: not tried twenty times a second
        with pytest.raises(CliError):
            file.write([scan_finding()], retry=True)
        assert file.incomplete
    file.write([scan_finding()], retry=True)
    assert not file.incomplete
    assert json.loads((tmp_path / "f.jsonl").read_text())["id"] == scan_finding().id


def test_missing_sources_are_read_from_any_state_of_a_collector() -> None:
    row = {"source": "perf", "reason": "r", "remedy": ""}
    assert missing_sources({"missing": [row, "odd"]}) == [row]
    assert missing_sources({"missing": "odd"}) == missing_sources({}) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root writes where others can")
@pytest.mark.parametrize(
    ("owner", "group", "mode"), [(4242, 0, 0o755), (0, 0, 0o777), (0, 4242, 0o775)]
)
def test_root_writes_no_scan_where_others_can_replace_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: int, group: int, mode: int
) -> None:
    monkeypatch.delenv("SUDO_UID", raising=False)
    directory = tmp_path / "theirs"
    directory.mkdir()
    directory.chmod(mode)
    os.chown(directory, owner, group)
    with pytest.raises(CliError, match="other users can replace files"):
        claim_directory(directory)
    assert list(directory.iterdir()) == []
    if owner:  # who runs a scan by sudo owns the directory
        monkeypatch.setenv("SUDO_UID", str(owner))
        claim_directory(directory)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root writes where others can")
@pytest.mark.parametrize("mode", [0o1777, 0o1775, 0o775, 0o755, 0o700])
def test_root_writes_a_scan_where_others_cannot_replace_its_files(
    tmp_path: Path, mode: int
) -> None:
    directory = tmp_path / "own"
    directory.mkdir()
    directory.chmod(mode)
    assert claim_directory(directory).is_file()
