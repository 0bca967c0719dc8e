"""Output files of a command, compared with its inputs before any work begins."""

from __future__ import annotations

import os
import stat
from collections.abc import Hashable, Iterable, Iterator, Mapping
from pathlib import Path

from reveal_cli.errors import USAGE, CliError


def check_outputs(outputs: Mapping[str, Path | None], inputs: Iterable[Path]) -> None:
    """Raise ``CliError`` where an output is also an input, or two outputs are one file.

    ``outputs`` has the path of each flag.  An input folder stands for the files in it.  Files are
    compared by device and inode, so links and other spellings of a path count as the same file.
    """
    users = {identity: "an input" for path in inputs for identity in _input_identities(path)}
    for flag, path in outputs.items():
        if path is None or (identity := _identity(path)) is None:
            continue
        if identity in users:
            raise CliError(
                f"{flag} {path} is also {users[identity]} and would be overwritten:"
                " name another file",
                USAGE,
            )
        users[identity] = f"the file of {flag}"


def _input_identities(path: Path) -> Iterator[Hashable]:
    for file in _files(path):
        if (identity := _identity(file)) is not None:
            yield identity


def _files(path: Path) -> list[Path]:
    try:
        return sorted(path.iterdir()) if path.is_dir() else [path]
    except OSError:  # whoever reads it reports the error
        return []


def _identity(path: Path) -> Hashable:
    """Return what identifies a file; None for devices and pipes, which nothing overwrites."""
    try:
        status = path.stat()
    except OSError:
        return os.path.realpath(path)
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None
