"""The page of all commands and flags is current and complete."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from reveal_cli.flags_page import page, programs

PAGE = Path(__file__).parents[3] / "docs/reference/cli.md"


def test_the_page_is_current() -> None:
    assert page(programs()).splitlines() == PAGE.read_text().splitlines(), "run `make docs`"


def test_every_command_of_the_help_has_a_section() -> None:
    reveal = programs()[0]
    listed = re.search(r"COMMAND\n(.*?)\n\n", reveal.format_help(), re.DOTALL)
    assert listed is not None
    names = re.findall(r"^ {4}(\w+)", listed[1], re.MULTILINE)
    assert "scan" in names
    headings = re.findall(r"^### reveal (\w+)$", page([reveal]), re.MULTILINE)
    assert headings == names


def test_an_argument_is_written_as_its_help_has_it() -> None:
    parser = argparse.ArgumentParser(prog="p", description="What ``p`` does.\nIn two lines.")
    parser.add_argument("files", nargs="+", metavar="FILE", help="read these")
    parser.add_argument("-o", "--out", metavar="DIR", required=True, help="write %(metavar)s|here")
    group = parser.add_argument_group("more")
    group.add_argument("--level", choices=("low", "high"), default="low", help="(%(default)s)")
    group.add_argument("--secret", help=argparse.SUPPRESS)
    text = page([parser]).partition("## p\n")[2]
    assert "What `p` does. In two lines." in text
    assert "| `FILE…` | read these |" in text
    assert "| `-o`, `--out DIR` | write DIR\\|here (required) |" in text
    assert "**more**" in text
    assert "| `--level {low,high}` | (low) |" in text
    assert "secret" not in text
    assert "--help" not in text
