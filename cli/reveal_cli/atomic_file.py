"""Writes files that are whole, or not there."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterable
from pathlib import Path

from reveal_cli.errors import CliError


def write_atomically(path: Path, parts: Iterable[str | bytes]) -> None:
    """Write a file so that it has the new content or the old one, never a part.

    A device or pipe, such as /dev/stdout, gets the content as it is.  The target of a link is
    replaced, not the link; a link of another user is refused, who could lead root to any file.
    Raises ``CliError``.
    """
    data = (part.encode() if isinstance(part, str) else part for part in parts)
    try:
        if _is_stream(path):
            with path.open("ab") as file:
                file.writelines(data)
        else:
            _check_owner(path)
            _replace(Path(os.path.realpath(path)), data)
    except OSError as error:
        raise CliError(f"cannot write {path}: {error.strerror}") from None


def _is_stream(path: Path) -> bool:
    """Return whether a path names a device, a pipe or an open descriptor, not a file on a disk."""
    folder = os.path.realpath(path.parent)
    if folder == "/dev" or folder.startswith("/proc/"):
        return True
    return path.exists() and not path.is_file() and not path.is_dir()


def _check_owner(path: Path) -> None:
    """Raise ``CliError`` for a link that another user made; root's links are everybody's."""
    if path.is_symlink() and path.lstat().st_uid not in {0, os.geteuid()}:
        raise CliError(f"{path} is a link of another user: name the file that it leads to")


def _replace(path: Path, data: Iterable[bytes]) -> None:
    # a name that nobody can know before, and that must not exist
    number, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".new", dir=path.parent)
    new = Path(name)
    try:
        with open(number, "wb") as file:
            file.writelines(data)
            os.fchmod(file.fileno(), _mode(path))
        new.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):  # read-only by now: the first error is the cause
            new.unlink()
        raise


def _mode(path: Path) -> int:
    """Return the mode of the file that is replaced, else what the umask leaves of a new one."""
    with contextlib.suppress(FileNotFoundError):
        return stat.S_IMODE(path.stat().st_mode)
    mask = os.umask(0o077)
    os.umask(mask)
    return 0o666 & ~mask
