"""The disk of a directory, and files on it to read."""

from __future__ import annotations

import os
from pathlib import Path

_CHUNK = 4 << 20
DATA_FILE, DATA_SIZE = "reveal-fault-data", 512 << 20


def disk_of(path: Path, sys: Path = Path("/sys")) -> str | None:
    """Return ``major:minor`` of the disk that contains ``path``; None if there is none (tmpfs)."""
    device = path.stat().st_dev
    entry = sys / "dev/block" / f"{os.major(device)}:{os.minor(device)}"
    if not entry.exists():
        return None
    whole = entry.resolve()
    if (whole / "partition").exists():
        whole = whole.parent
    return (whole / "dev").read_text().strip()


def no_disk(directory: Path) -> str:
    """Return why storage faults cannot use ``directory``; "" if they can."""
    if disk_of(directory) is None:
        return f"{directory} is not on a disk; choose another scratch directory"
    free = os.statvfs(directory)
    if free.f_bavail * free.f_frsize < 3 * DATA_SIZE:
        return f"{directory} has less than {3 * DATA_SIZE >> 20} MiB free"
    return ""


def data_file(directory: Path) -> Path:
    """Return a file of 512 MiB of random data in ``directory``, which is not in the page cache.

    The first call creates it.  The caller removes the directory.
    """
    path = directory / DATA_FILE
    if not path.exists():
        fresh = path.with_suffix(".new")
        with fresh.open("wb") as file:
            block = os.urandom(_CHUNK)
            for _ in range(DATA_SIZE // _CHUNK):
                file.write(block)
            file.flush()
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        fresh.replace(path)
    return path
