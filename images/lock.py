"""Write the lock files of the images, or check with ``--check`` that they are current.

A lock file pins exact versions and the SHA-256 of each of their files, for all platforms and
Python versions that the project supports, so that one file serves every base image.  A locked
version stays until pyproject.toml no longer allows it; ``--upgrade`` takes the newest ones.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FOLDER = Path(__file__).resolve().parent / "locks"
COMMAND = "make locks"


@dataclass(frozen=True)
class Lock:
    """Content of a lock file: extras of the project without what its image never imports."""

    name: str
    extras: tuple[str, ...] = ()  # none: what builds the package
    without: tuple[str, ...] = ()


LOCKS = (
    Lock("build"),
    # numpy is for hosts without the C part, which an image always has
    Lock("collector", ("collector",), without=("numpy",)),
    # of the client of Kubernetes the synchronous half: aiohttp is kopf's own
    Lock("operator", ("operator",), without=("aiohttp-retry",)),
    # pandas reads tables of other tools for the command line
    Lock(
        "analyzer",
        ("analyzer", "kubernetes", "fast"),
        without=("aiohttp", "aiohttp-retry", "pandas"),
    ),
)


class LockError(Exception):
    """A lock file cannot be compiled; the text says why."""


def main(argv: Sequence[str] | None = None) -> int:
    """Return 0 if the lock files are written or current, else 1."""
    arguments = command_parser().parse_args(argv)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    stale = []
    try:
        for lock in LOCKS:
            file = FOLDER / f"{lock.name}.txt"
            before = file.read_text() if file.exists() else ""
            now = compiled(project, lock, "" if arguments.upgrade else before)
            if now != before and not arguments.check:
                file.write_text(now)
            if now != before:
                stale.append(str(file.relative_to(ROOT)))
    except LockError as error:
        print(f"lock: {error}", file=sys.stderr)
        return 1
    if arguments.check and stale:
        print(f"out of date with pyproject.toml: {', '.join(stale)}; run `{COMMAND}`")
        return 1
    print(f"written: {', '.join(stale)}" if stale else "all lock files are current")
    return 0


def command_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if out of date")
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions")
    return parser


def requirements(project: dict[str, Any], lock: Lock) -> list[str]:
    """Return the requirements of the image as pyproject.toml states them."""
    if not lock.extras:
        return list(project["build-system"]["requires"])
    extras = project["project"]["optional-dependencies"]
    return sorted({requirement for extra in lock.extras for requirement in extras[extra]})


def compiled(project: dict[str, Any], lock: Lock, before: str) -> str:
    """Return the text of a lock file; keep the versions of ``before`` that are still allowed."""
    with tempfile.TemporaryDirectory() as folder:
        output, excludes = Path(folder, "lock.txt"), Path(folder, "excludes.txt")
        output.write_text(before)
        excludes.write_text("".join(f"{name}\n" for name in lock.without))
        oldest = project["project"]["requires-python"].removeprefix(">=")
        command = [
            sys.executable, "-m", "uv", "pip", "compile", "-", "--quiet", "--no-config",
            "--universal", "--python-version", oldest, "--generate-hashes", "--no-annotate",
            "--custom-compile-command", COMMAND, "--excludes", excludes, "--output-file", output,
        ]  # fmt: skip
        done = subprocess.run(
            command, input="\n".join(requirements(project, lock)), env=_environment(),
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise LockError(f"{lock.name}: {done.stderr.strip()}")
        return output.read_text()


def _environment() -> dict[str, str]:
    """Return the environment of uv, with the package index that is configured for pip."""
    known = dict(os.environ)
    if "PIP_INDEX_URL" in known:
        known.setdefault("UV_DEFAULT_INDEX", known["PIP_INDEX_URL"])
    return known


if __name__ == "__main__":
    sys.exit(main())
