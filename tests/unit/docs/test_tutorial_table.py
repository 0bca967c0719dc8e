"""The tutorial about tables shows what its own script and commands print."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from reveal_cli.__main__ import main
from reveal_cli.errors import DONE

PAGE = Path(__file__).parents[3] / "docs/tutorials/first-table.md"
_SCRIPT = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^\$ reveal ((?:explain|analyze) .+)\n((?:.*\n)*?)```$", re.MULTILINE)


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the table that the first script of the page writes, in the current folder."""
    script = tmp_path / "make-table.py"
    script.write_text(_SCRIPT.findall(PAGE.read_text())[0])
    table = tmp_path / "node-1.csv"
    with table.open("w") as output:
        subprocess.run([sys.executable, script], check=True, stdout=output)
    monkeypatch.chdir(tmp_path)
    return table


def commands() -> list[tuple[str, str]]:
    """Return each command of the page with the output that stands below it."""
    return _COMMAND.findall(PAGE.read_text())


def test_the_page_has_both_commands() -> None:
    assert [command.split()[0] for command, _ in commands()] == ["explain", "analyze"]


@pytest.mark.parametrize(("command", "output"), commands(), ids=["explain", "analyze"])
def test_the_output_is_current(
    command: str,
    output: str,
    table: Path,
    capsys: pytest.CaptureFixture[str],
    own_signals: None,
) -> None:
    assert table.name in command
    assert main(command.split()) == DONE
    assert capsys.readouterr().out == output
