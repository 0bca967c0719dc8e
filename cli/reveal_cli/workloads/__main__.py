"""``python -m reveal_cli.workloads train|server|loader``: run a workload until interrupted."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from reveal_cli.workloads import NAMES, Workload, WorkloadError
from reveal_contract.runtime.ignored_signals import without_ignored

_CHECK_S = 0.2


def main(argv: Sequence[str] | None = None) -> int:
    """Run a workload; return 0 if time or a signal ended it, 1 if it failed."""
    parser = argparse.ArgumentParser(prog="python -m reveal_cli.workloads", description=__doc__)
    parser.add_argument("name", choices=NAMES)
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), help="duration (default: endless)"
    )
    parser.add_argument("--scratch", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument(
        "--log", type=Path, default=Path("/dev/stdout"), help="file for the JSON lines"
    )
    arguments = parser.parse_args(argv)
    for number in (signal.SIGTERM, *without_ignored([signal.SIGINT])):
        signal.signal(number, _interrupt)
    try:
        return _run(Workload(arguments.name, arguments.scratch, arguments.log), arguments.seconds)
    except KeyboardInterrupt:
        return 0
    except WorkloadError as error:
        print(f"workloads: {error}", file=sys.stderr)
        return 1


def _run(workload: Workload, seconds: float) -> int:
    end = time.monotonic() + seconds
    with workload:
        while time.monotonic() < end:
            if not workload.alive:
                raise WorkloadError(f"{workload.name} ended by itself; see its log")
            time.sleep(_CHECK_S)
    return 0


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
