"""Writes files that are whole, or not there."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

from reveal_cli.errors import CliError


def write_atomically(path: Path, parts: Iterable[str | bytes]) -> None:
    """Write a file so that it has the new content or the old one, never a part.

    A device or pipe, such as /dev/stdout, gets the content as it is.  The target of a link is
    replaced, not the link.  Raises ``CliError``.
    """
    data = (part.encode() if isinstance(part, str) else part for part in parts)
    try:
        if _is_stream(path):
            with path.open("ab") as file:
                file.writelines(data)
        else:
            _replace(Path(os.path.realpath(path)), data)
    except OSError as error:
        raise CliError(f"cannot write {path}: {error.strerror}") from None


def _is_stream(path: Path) -> bool:
    """Return whether a path names a device, a pipe or an open descriptor, not a file on a disk."""
    folder = os.path.realpath(path.parent)
    if folder == "/dev" or folder.startswith("/proc/"):
        return True
    return path.exists() and not path.is_file() and not path.is_dir()


def _replace(path: Path, data: Iterable[bytes]) -> None:
    new = path.with_name(f".{path.name}.new")
    try:
        with new.open("wb") as file:
            file.writelines(data)
        new.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):  # read-only by now: the first error is the cause
            new.unlink()
        raise
