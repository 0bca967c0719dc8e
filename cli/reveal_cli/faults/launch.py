"""Starts the processes of faults and workloads: in their cgroup, in their own session, marked.

Every such process is killed with the process that started it (PR_SET_PDEATHSIG), as far as its
program permits, and is found by its mark otherwise.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from reveal_cli import child_process
from reveal_cli.faults.cgroups import Cgroup
from reveal_cli.faults.ledger import MARK

# joins the cgroups before the program runs, so that all its children are in them, too
_JOIN = 'while [ "$1" != -- ]; do echo $$ > "$1" || exit 99; shift; done; shift; exec "$@"'
LAUNCHERS = ("setpriv", "sh", "ip")  # names of a process before it executes the program
_TERM_S = 1.0


def start(
    command: Sequence[str], mark: str, group: Cgroup | None, output: Path | int | None = None
) -> subprocess.Popen[bytes]:
    """Start ``command`` as leader of a session of its own, in ``group`` if one is given.

    Its output and errors are appended to ``output``, a path or an open descriptor, or discarded.
    """
    die_with_parent = ["setpriv", "--pdeathsig", "KILL", "--"] if shutil.which("setpriv") else []
    joins = ["sh", "-c", _JOIN, "sh", *group.joins(), "--"] if group else []
    destination = os.devnull if output is None else output
    with open(destination, "ab", closefd=not isinstance(destination, int)) as stream:
        return subprocess.Popen(
            [*die_with_parent, *joins, *command],
            env=environment({MARK: mark}),
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            start_new_session=True,
        )


def stop(process: subprocess.Popen[bytes]) -> None:
    """Stop the process and its session: with SIGTERM, then with SIGKILL."""
    child_process.stop(process, _TERM_S, group=True)


def python(module: str, *arguments: str) -> list[str]:
    """Return the command line of a module of this package."""
    return [sys.executable, "-m", module, *arguments]


def environment(added: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    """Return the environment of a child, which finds this package in an uninstalled checkout."""
    root = str(Path(__file__).parents[2])
    path = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, **added, "PYTHONPATH": path}
