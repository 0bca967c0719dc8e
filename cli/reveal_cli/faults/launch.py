"""Starts the processes of faults and workloads: in their cgroup, their own session, marked.

Every such process dies with the process that started it (PR_SET_PDEATHSIG), as far as its
program allows, and is found again by its mark where it did not.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from reveal_cli.faults.cgroups import Cgroup
from reveal_cli.faults.ledger import MARK

# joins the cgroups before the program runs, so that no child of it is missed
_JOIN = 'while [ "$1" != -- ]; do echo $$ > "$1" || exit 99; shift; done; shift; exec "$@"'
LAUNCHERS = ("setpriv", "sh", "ip")  # what a process is called before it becomes the program
_TERM_S, _KILL_S = 1.0, 3.0


def start(
    command: Sequence[str], mark: str, group: Cgroup | None, output: Path | int | None = None
) -> subprocess.Popen[bytes]:
    """Start ``command`` as leader of a session of its own, in ``group`` where one is given.

    What it prints, errors too, is appended to ``output``, a path or an open descriptor, or
    dropped.
    """
    dying = ["setpriv", "--pdeathsig", "KILL", "--"] if shutil.which("setpriv") else []
    joins = ["sh", "-c", _JOIN, "sh", *group.joins(), "--"] if group else []
    where = os.devnull if output is None else output
    with open(where, "ab", closefd=not isinstance(where, int)) as said:
        return subprocess.Popen(
            [*dying, *joins, *command],
            env={**os.environ, MARK: mark, "PYTHONPATH": _python_path()},
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )


def stop(process: subprocess.Popen[bytes]) -> None:
    """End the process and its session: politely, then at once."""
    for number, patience in ((signal.SIGTERM, _TERM_S), (signal.SIGKILL, _KILL_S)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience)
            if number == signal.SIGTERM:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)  # members that outlive their leader
            return


def python(module: str, *arguments: str) -> list[str]:
    """The command line of a module of this package."""
    return [sys.executable, "-m", module, *arguments]


def _python_path() -> str:
    """Where this package lies, for children of an uninstalled checkout too."""
    root = str(Path(__file__).parents[2])
    return os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
