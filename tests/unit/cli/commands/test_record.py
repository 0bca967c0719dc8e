"""``reveal record`` writes to the file that it claimed, or to none."""

from __future__ import annotations

from pathlib import Path

import pytest

from reveal_cli.__main__ import main
from reveal_cli.commands import record
from reveal_cli.errors import ERROR


def test_a_link_instead_of_the_claimed_file_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    own_signals: None,
) -> None:  # fmt: skip
    target, file = tmp_path / "target", tmp_path / "r.rvl"
    target.touch()
    claim = record._claim

    def claimed_and_replaced(path: Path) -> None:
        claim(path)
        path.unlink()
        path.symlink_to(target)

    monkeypatch.setattr(record, "_claim", claimed_and_replaced)
    assert main(["record", str(file), "--duration", "30s"]) == ERROR
    assert "it is a link" in capsys.readouterr().err
    assert target.read_bytes() == b""


def test_a_file_that_exists_is_not_claimed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], own_signals: None
) -> None:
    (tmp_path / "r.rvl").symlink_to(tmp_path / "none")
    assert main(["record", str(tmp_path / "r.rvl")]) == ERROR
    assert "exists already" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()
