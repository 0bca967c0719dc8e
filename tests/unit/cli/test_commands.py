"""The commands where only a component is installed: one sentence says what is missing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


def run_without(module: str, *arguments: str) -> tuple[int, list[str]]:
    code = f"""
import sys
sys.modules[{module!r}] = None
from reveal_cli.__main__ import main
sys.exit(main({list(arguments)!r}))
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    return done.returncode, done.stderr.splitlines()


@pytest.mark.parametrize(
    ("module", "command"), [("rich", "catalog"), ("numpy", "catalog"), ("pandas", "analyze")]
)
def test_a_missing_module_gives_a_sentence(module: str, command: str, tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("time,cpu\n" + "".join(f"{second},{second % 7}\n" for second in range(300)))
    code, [line] = run_without(module, command, *([str(table)] if command == "analyze" else []))
    assert code == 1
    assert f"module {module} is not installed" in line
    assert "[all]" in line
