"""The command line ``reveal``.  Progress and warnings go to stderr, data to stdout."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence

from reveal_cli.commands import COMMANDS
from reveal_cli.errors import DONE, ERROR, CliError
from reveal_cli.interrupt import Interrupt, Interrupted
from reveal_contract import VERSION


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
    interrupt = Interrupt()
    interrupt.install()
    # the commands print what matters; a log line would break the progress block
    logging.basicConfig(handlers=[logging.NullHandler()])
    try:
        arguments = build_parser().parse_args(argv)
        code: int = arguments.run(arguments, interrupt)
        sys.stdout.flush()
    except CliError as error:
        print(f"reveal: {error}", file=sys.stderr)
        return error.code
    except Interrupted:
        print("reveal: interrupted", file=sys.stderr)
        return ERROR
    except BrokenPipeError:
        # the reader has closed the pipe; keep the interpreter from flushing into it again
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    return code


if __name__ == "__main__":
    sys.exit(main())
