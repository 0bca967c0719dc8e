"""The command line ``reveal``.  Progress and warnings go to stderr, data to stdout."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from reveal_cli.program import Program
from reveal_contract import VERSION

_PROGRAM = Program("reveal", extras="all")

try:
    from reveal_cli.commands import COMMANDS
except ModuleNotFoundError as error:
    sys.exit(_PROGRAM.missing(error))


def build_parser() -> argparse.ArgumentParser:
    """Return the parser with all commands."""
    parser = argparse.ArgumentParser(
        prog="reveal",
        description="Finds what silently slows down jobs, from hardware and kernel signals alone.",
        epilog="Start with `reveal scan`, or with `reveal demo` to see how a real fault is found."
        " `reveal COMMAND --help` describes each command. Exit codes: 0 done, 1 error,"
        " 2 wrong usage, 3 with --fail-on when a finding is at least that severe.",
    )
    parser.add_argument("--version", action="version", version=f"reveal {VERSION}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    return _PROGRAM.main(build_parser, argv)


if __name__ == "__main__":
    sys.exit(main())
