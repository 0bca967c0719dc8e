"""``reveal record``: record this host into a file for ``reveal analyze``."""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import sys
import time
from pathlib import Path

from reveal_cli.collector_process import CollectorProcess, host_flags
from reveal_cli.errors import DONE, CliError
from reveal_cli.interrupt import Interrupt
from reveal_cli.options import add_host, check_host, duration, format_duration
from reveal_contract.recording import MAGIC

_STOP_S = 1.5  # time for the collector to end its file in order, s


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its flags."""
    parser = commands.add_parser(
        "record",
        help="record this host into a file, to judge it later",
        description="Samples this host into FILE (about 3 kB a second). `reveal analyze FILE`"
        " judges it, here or on another machine. Ctrl-C ends it at any time.",
        epilog="Example: reveal record slow.rvl --duration 10m",
    )
    parser.add_argument("file", metavar="FILE", type=Path, help="the file to write; must be new")
    parser.add_argument(
        "--duration", metavar="TIME", type=duration, default=duration("3m"),
        help="how long to record (default 3m; 0 or forever: until Ctrl-C)",
    )  # fmt: skip
    add_host(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, interrupt: Interrupt) -> int:
    """Record until the time is over or the user interrupts."""
    check_host(arguments)
    _claim(arguments.file)
    flags = ["--record", str(arguments.file), *host_flags(arguments)]
    with CollectorProcess(flags) as collector:
        end = time.monotonic() + arguments.duration
        while not interrupt.requested and time.monotonic() < end:
            if collector.returncode is not None:
                _remove_empty(arguments.file)
                raise collector.failure()
            time.sleep(0.05)
        collector.stop(_STOP_S)
    if sys.stderr.isatty():
        size = arguments.file.stat().st_size
        length = (
            "" if math.isinf(arguments.duration) else f", {format_duration(arguments.duration)}"
        )
        print(f"{arguments.file}: {size / 1e6:.1f} MB{length}", file=sys.stderr)
    return DONE


def _claim(path: Path) -> None:
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
    except FileExistsError:
        raise CliError(f"{path} exists already: name another file or remove it") from None
    except OSError as error:
        raise CliError(f"cannot write {path}: {error.strerror}") from None


def _remove_empty(path: Path) -> None:
    """Remove a file without records, so that the next try can use its name."""
    with contextlib.suppress(OSError):  # read-only by now: the first error is the cause
        if path.stat().st_size <= len(MAGIC):
            path.unlink()
