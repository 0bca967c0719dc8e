"""Files that are written whole: links, modes, and what is left after an error."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from reveal_cli.atomic_file import write_atomically
from reveal_cli.errors import CliError

ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
STRANGER = 4242


def test_a_file_gets_its_content_and_the_mode_of_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "a", ["x", b"y"])
    finally:
        os.umask(before)
    assert (tmp_path / "a").read_text() == "xy"
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640
    assert [each.name for each in tmp_path.iterdir()] == ["a"]


def test_a_file_that_is_replaced_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.touch()
    path.chmod(0o600)
    write_atomically(path, ["x"])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_target_of_a_link_of_the_user_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to("target")
    write_atomically(tmp_path / "link", ["new"])
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "new"


@ROOT_ONLY
def test_a_link_of_another_user_leads_nowhere(tmp_path: Path) -> None:
    precious, link = tmp_path / "precious", tmp_path / "scores.csv"
    precious.write_text("old")
    link.symlink_to(precious)
    os.lchown(link, STRANGER, STRANGER)
    with pytest.raises(CliError, match="is a link of another user"):
        write_atomically(link, ["new"])
    assert precious.read_text() == "old"


def test_a_link_where_temporary_files_were_is_not_followed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("old")
    (tmp_path / ".a.new").symlink_to(precious)
    write_atomically(tmp_path / "a", ["new"])
    assert precious.read_text() == "old"


def test_an_error_leaves_the_old_content_and_no_other_file(tmp_path: Path) -> None:
    def parts() -> Iterator[str]:
        yield "new"
        raise OSError(28, "No space left on device")

    (tmp_path / "a").write_text("old")
    with pytest.raises(CliError, match="No space left"):
        write_atomically(tmp_path / "a", parts())
    assert (tmp_path / "a").read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["a"]
