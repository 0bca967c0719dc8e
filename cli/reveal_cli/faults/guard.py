"""A process that undoes the changes of a run at once if that is killed.

It waits for the end of its standard input, which only the run holds open, and then undoes what
has no owner any more.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from reveal_cli.faults import launch
from reveal_cli.faults.ledger import LedgerError, sweep

_END_S = 10.0  # until a guard that has nothing to undo has ended


@contextlib.contextmanager
def guarded(directory: Path | None = None) -> Iterator[None]:
    """Have the ledgers of ``directory`` (default: those of this user) undone if this is killed."""
    arguments = [] if directory is None else [str(directory)]
    process = subprocess.Popen(
        launch.python(__name__, *arguments),
        env=launch.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C and a closed terminal reach the run, not its guard
    )
    try:
        yield
    finally:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=_END_S)


def main(arguments: list[str]) -> int:
    """Wait for the end of the run, and undo what it left; return an exit status."""
    sys.stdin.buffer.read()
    try:
        sweep(Path(arguments[0]) if arguments else None)
    except (OSError, LedgerError) as error:
        print(f"reveal: the changes of a killed run remain: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
