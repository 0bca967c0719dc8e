"""``python -m reveal_cli.workloads train|server|loader``: run one until interrupted."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from reveal_cli.workloads import NAMES, Workload, WorkloadError

_LOOK_S = 0.2


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code 0 when ended by time or signal, 1 when the workload failed."""
    parser = argparse.ArgumentParser(prog="python -m reveal_cli.workloads", description=__doc__)
    parser.add_argument("name", choices=NAMES)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="how long (for ever)")
    parser.add_argument("--scratch", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--log", type=Path, default=Path("/dev/stdout"), help="JSON lines go here")
    asked = parser.parse_args(argv)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _interrupt)
    try:
        return _run(Workload(asked.name, asked.scratch, asked.log), asked.seconds)
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
                raise WorkloadError(f"{workload.name} ended by itself; its log says why")
            time.sleep(_LOOK_S)
    return 0


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
