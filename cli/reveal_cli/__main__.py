"""The command line ``reveal``.  Progress and warnings go to stderr, data to stdout."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence

from reveal_cli.errors import ERROR, CliError
from reveal_cli.guarded_output import GuardedOutput, guarded_streams
from reveal_cli.interrupt import Interrupt, Interrupted
from reveal_contract import VERSION


def _missing(error: ModuleNotFoundError) -> str:
    """Return what to do where only a component is installed, such as the collector.

    Raises the error again if the module is none of another project: that is a defect.
    """
    module = (error.name or "").partition(".")[0]
    if not module or module.startswith("reveal_"):
        raise error
    return (
        f"reveal: the Python module {module} is not installed: install the extra `all`, that is"
        " pip install '/path/to/checkout[all]'"
    )


try:
    from reveal_cli.commands import COMMANDS
except ModuleNotFoundError as error:
    sys.exit(_missing(error))


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
    with guarded_streams() as output:
        try:
            code = _run(argv, interrupt)
        except SystemExit:  # argparse has printed the help, the version or a usage error
            if not _incomplete(output):
                raise
            return ERROR
        return ERROR if _incomplete(output) else code


def _run(argv: Sequence[str] | None, interrupt: Interrupt) -> int:
    """Run a command and return its exit code; an error is one sentence on stderr."""
    try:
        arguments = build_parser().parse_args(argv)
        code: int = arguments.run(arguments, interrupt)
    except CliError as error:
        print(f"reveal: {error}", file=sys.stderr)
        return error.code
    except Interrupted:
        print("reveal: interrupted", file=sys.stderr)
        return ERROR
    except ModuleNotFoundError as error:  # commands import what only they need
        print(_missing(error), file=sys.stderr)
        return ERROR
    except OSError as error:  # such as a full disk: no defect, and no traceback
        print(f"reveal: {_sentence(error)}", file=sys.stderr)
        return ERROR
    return code


def _sentence(error: OSError) -> str:
    reason = error.strerror or str(error)
    return f"{error.filename}: {reason}" if error.filename else reason


def _incomplete(output: GuardedOutput) -> bool:
    """Return whether stdout could not take everything; the reason is printed then."""
    output.flush()
    if output.error is None:
        return False
    print(f"reveal: cannot write the output: {_sentence(output.error)}", file=sys.stderr)
    return True


if __name__ == "__main__":
    sys.exit(main())
