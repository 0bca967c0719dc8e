"""``reveal record``: this host's slices into a file, judged later by ``reveal analyze``."""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from pathlib import Path

from reveal_cli.collector_process import CollectorProcess, host_flags
from reveal_cli.errors import DONE, CliError
from reveal_cli.interrupt import Interrupt
from reveal_cli.options import add_host, check_host, clock, duration
from reveal_contract.recording import MAGIC

_STOPPING = 1.5  # what the collector gets to end its file in order, s


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "record",
        help="record this host into a file, to be judged later",
        description="Samples this host into FILE (about 3 KB a second); `reveal analyze FILE`"
        " judges it, here or elsewhere. End it at any time with Ctrl-C.",
    )
    parser.add_argument("file", metavar="FILE", type=Path, help="where to; must not exist yet")
    parser.add_argument(
        "--duration", metavar="TIME", type=duration, default=duration("3m"),
        help="how long to record (default 3m; 0 or forever: until Ctrl-C)",
    )  # fmt: skip
    add_host(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, interrupt: Interrupt) -> int:
    check_host(arguments)
    _claim(arguments.file)
    flags = ["--record", str(arguments.file), *host_flags(arguments)]
    with CollectorProcess(flags) as collector:
        until = time.monotonic() + arguments.duration
        while not interrupt.requested and time.monotonic() < until:
            if collector.returncode is not None:
                _drop_empty(arguments.file)
                raise collector.failure()
            time.sleep(0.05)
        collector.stop(_STOPPING)
    if sys.stderr.isatty():
        size = arguments.file.stat().st_size
        length = "" if math.isinf(arguments.duration) else f", {clock(arguments.duration)}"
        print(f"{arguments.file}: {size / 1e6:.1f} MB{length}", file=sys.stderr)
    return DONE


def _claim(path: Path) -> None:
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
    except FileExistsError:
        raise CliError(f"{path} exists already: name another file or remove it") from None
    except OSError as error:
        raise CliError(f"cannot write {path}: {error.strerror}") from None


def _drop_empty(path: Path) -> None:
    """Nothing was recorded: the next try may have the name."""
    if path.stat().st_size <= len(MAGIC):
        path.unlink()
