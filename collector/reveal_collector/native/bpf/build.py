"""Compile the BPF programs of the lost-time ledger into a light skeleton, a C header.

``make ledger`` runs it after a change of the programs.  It needs clang 19 or newer, llvm-strip of
the same version, bpftool and libbpf's headers (Debian: clang-19 llvm-19 bpftool libbpf-dev), which
neither users nor their compilers need: the header is part of the sources.  ``build.py --check``
says whether the header is current, by a hash of its sources.
"""

from __future__ import annotations

import hashlib
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
SOURCES = ("ledger.bpf.c", "ledger.h", "kernel.h")
SKELETON = HERE / "ledger.lskel.h"
PACKAGES = "clang-19 llvm-19 bpftool libbpf-dev"
_OLDEST_CLANG, _NEWEST_CLANG = 19, 30
_MARK, _TOOLS = "/* sources: ", "/* made by: "
_FLAGS = ("-O2", "-g", "-target", "bpf", "-mcpu=v3", "-mlittle-endian", "-Wall", "-Werror")
_TARGET = "-D__TARGET_ARCH_x86"
_NO_PATHS = (f"-ffile-prefix-map={HERE}=.", "-fdebug-compilation-dir=.")  # same in each checkout


class MissingTool(Exception):
    """A program that compiles BPF is not installed."""


def fingerprint() -> str:
    """Return the hash of the sources, which the header carries."""
    texts = (HERE.joinpath(name).read_bytes() for name in SOURCES)
    return hashlib.sha256(b"\0".join(texts)).hexdigest()


def is_current() -> bool:
    """Return whether the header was made from these sources."""
    return SKELETON.exists() and f"{_MARK}{fingerprint()}" in SKELETON.read_text()


def skeleton() -> str:
    """Return the header, compiled now; raises ``MissingTool`` or ``CalledProcessError``."""
    clang, strip = _newest("clang"), _newest("llvm-strip")
    bpftool = shutil.which("bpftool") or shutil.which("bpftool", path="/usr/sbin:/sbin")
    if bpftool is None:
        raise MissingTool("bpftool")
    versions = (_run(tool, "--version").splitlines()[0] for tool in (clang, bpftool))
    tools = ", ".join(version.rpartition("/")[2] for version in versions)
    includes = ["-I", f"/usr/include/{platform.machine()}-linux-gnu"]
    with tempfile.TemporaryDirectory() as folder:
        output = str(Path(folder) / "ledger.bpf.o")  # the skeleton is named after it
        _run(clang, *_FLAGS, _TARGET, *includes, *_NO_PATHS, "-c", SOURCES[0], "-o", output)
        _run(strip, "-g", output)
        header = _run(bpftool, "gen", "skeleton", "-L", output)
    return f"{_MARK}{fingerprint()} */\n{_TOOLS}{tools} */\n{header}"


def _newest(name: str) -> str:
    for version in range(_OLDEST_CLANG, _NEWEST_CLANG):
        if program := shutil.which(f"{name}-{version}"):
            return program
    raise MissingTool(f"{name}-{_OLDEST_CLANG} or newer")


def _run(*command: str) -> str:
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False)
    if done.returncode:
        raise subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stderr)
    return done.stdout


def tools_of(header: str) -> str:
    """Return the line that names the tools; others may make another header."""
    return next((line for line in header.splitlines() if line.startswith(_TOOLS)), "")


def check() -> str:
    """Return what is wrong with the header; what could not be checked is printed."""
    if not is_current():
        return f"{SKELETON.name} was made from other sources: run `make ledger`"
    try:
        compiled = skeleton()
    except MissingTool as error:
        sys.stdout.write(f"{SKELETON.name} is not compiled: {error} is not installed\n")
        return ""
    present = SKELETON.read_text()
    if tools_of(compiled) != tools_of(present):
        sys.stdout.write(f"{SKELETON.name} is not compared: it is not {tools_of(compiled)}\n")
        return ""
    return "" if compiled == present else f"{SKELETON.name} differs from what it compiles to"


def main(arguments: list[str]) -> str:
    """Write the header, or check it; return the error, if there is one."""
    try:
        if "--check" in arguments:
            return check()
        SKELETON.write_text(skeleton())
    except MissingTool as error:
        return f"{error} is not installed (Debian: apt-get install {PACKAGES})"
    except subprocess.CalledProcessError as error:
        return f"{error.cmd[0]} failed: {error.stderr.strip()[-2000:]}"
    return ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]) or 0)
