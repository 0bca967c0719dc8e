"""Compiles the C parts into one shared library, next to their sources.

``make native`` does it by hand (``python build.py [FILE [FLAG...]]``); installing the package
does it where a C compiler is there, and goes on without where none is.  Nothing of the package
is imported here, as the build has none of it yet.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).parent
LIBRARY = "_native.so"
FLAGS = ("-std=gnu11", "-O3", "-g0", "-shared", "-fPIC", "-fvisibility=default", "-pthread")


def compiler() -> str | None:
    """The C compiler to use: ``$CC`` or the system's; none where there is none."""
    return shutil.which(os.environ.get("CC", "cc")) or shutil.which("gcc") or shutil.which("clang")


def build(into: Path = HERE / LIBRARY, flags: Sequence[str] = FLAGS) -> Path:
    """Compile all sources; raises ``OSError`` where it cannot be done, with the reason.

    A process that has the old library loaded keeps it: the new one takes its name only.
    """
    program = compiler()
    if program is None:
        raise FileNotFoundError("no C compiler")
    sources = sorted(str(path) for path in HERE.glob("*.c"))
    into.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=into.parent) as folder:
        made = Path(folder) / into.name
        command = [program, *flags, "-o", str(made), *sources]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise OSError(f"{program} failed: {done.stderr.strip()[-2000:]}")
        made.replace(into)
    return into


if __name__ == "__main__":
    build(Path(sys.argv[1]) if sys.argv[1:] else HERE / LIBRARY, [*FLAGS, *sys.argv[2:]])
