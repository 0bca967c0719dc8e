"""``reveal``: the command line.  Progress and warnings go to stderr, data to stdout."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence

from reveal_cli.commands import (
    analyze,
    catalog,
    demo,
    doctor,
    explain,
    hypotheses,
    record,
    scan,
    select,
)
from reveal_cli.errors import DONE, ERROR, CliError
from reveal_cli.interrupt import Interrupt, Interrupted
from reveal_contract import VERSION

_COMMANDS = (scan, demo, record, analyze, explain, catalog, hypotheses, select, doctor)


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="reveal",
        description="Finds what silently slows jobs down, from hardware and kernel signals alone.",
        epilog="Begin with `reveal scan`, or with `reveal demo` to see a real fault found."
        " `reveal COMMAND --help` explains each. Exit codes: 0 done, 1 error, 2 wrong usage,"
        " 3 with --fail-on when a finding of that severity was found.",
    )
    parser.add_argument("--version", action="version", version=f"reveal {VERSION}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in _COMMANDS:
        command.add(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    interrupt = Interrupt()
    interrupt.install()
    # the commands say what matters themselves; a log line would tear the progress block apart
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
        # whoever read our output has enough; keep the interpreter from flushing into it again
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    return code


if __name__ == "__main__":
    sys.exit(main())
