"""The page that lists every field of the API and every flag, with the test that sees its effect."""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from reveal_analyzer.__main__ import parser as analyzer_parser
from reveal_cli.__main__ import build_parser
from reveal_cli.kubectl.__main__ import build_parser as kubectl_parser
from reveal_collector.command import parser as collector_parser
from reveal_operator.__main__ import parser as operator_parser

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/reference/fields-and-flags.md"
_QUOTED = re.compile(r"`([^`]+)`")
_FIXED = ("--help", "--version")  # argparse's own


class Row(NamedTuple):
    """One row of the page: what it is about, what that changes, and the tests that see it."""

    names: tuple[str, ...]
    changes: str
    tests: tuple[str, ...]


def rows(heading: str) -> list[Row]:
    """Return the rows of the table below a heading of the page."""
    text = PAGE.read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("| `")]
    return [_row(line) for line in lines]


def _row(line: str) -> Row:
    names, changes, tests = (cell.strip() for cell in line.strip("|").split(" | "))
    return Row(tuple(_QUOTED.findall(names)), changes, tuple(_QUOTED.findall(tests)))


def flags() -> dict[str, set[str]]:
    """Return the flags and arguments of each command of each program."""
    parsers = {
        "reveal": build_parser(),
        "kubectl reveal": kubectl_parser(),
        "reveal-collector": collector_parser(),
        "reveal-analyzer": analyzer_parser(),
        "reveal-operator": operator_parser(),
    }
    found: dict[str, set[str]] = {}
    for program, parser in parsers.items():
        for command, flag in _flags(parser, program):
            found.setdefault(command, set()).add(flag)
    return found


def _flags(parser: argparse.ArgumentParser, command: str) -> Iterator[tuple[str, str]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, part in action.choices.items():
                yield from _flags(part, f"{command} {name}")
        elif not set(action.option_strings) & set(_FIXED):
            long = [text for text in action.option_strings if text.startswith("--")]
            yield command, (long or [action.dest.upper()])[0]


@cache
def tests_of(path: str) -> frozenset[str]:
    """Return the names of the tests in a file of the repository."""
    tree = ast.parse((ROOT / path).read_text())
    return frozenset(
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    )
