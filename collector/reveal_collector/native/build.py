"""Compiles the C parts into one shared library, next to their sources.

``make native`` runs it (``python build.py [FILE [FLAG...]]``).  Installing the package runs it
where a C compiler is available, and continues without the library where none is.  It imports
nothing of the package, which is not installed yet during the build.
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
    """Return the path of the C compiler: ``$CC`` or the system's; None where there is none."""
    return shutil.which(os.environ.get("CC", "cc")) or shutil.which("gcc") or shutil.which("clang")


def build(into: Path = HERE / LIBRARY, flags: Sequence[str] = FLAGS) -> Path:
    """Compile all sources and return the library; raises ``OSError`` with the compiler's message.

    A process that has loaded the old library keeps it: only the name refers to the new one.
    """
    program = compiler()
    if program is None:
        raise FileNotFoundError("no C compiler")
    sources = sorted(str(path) for path in HERE.glob("*.c"))
    into.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=into.parent) as folder:
        output = Path(folder) / into.name
        command = [program, *flags, f"-I{HERE}", "-o", str(output), *sources]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise OSError(f"{program} failed: {done.stderr.strip()[-2000:]}")
        output.replace(into)
    return into


if __name__ == "__main__":
    build(Path(sys.argv[1]) if sys.argv[1:] else HERE / LIBRARY, [*FLAGS, *sys.argv[2:]])
