"""The disk under a directory, and files on it to read."""

from __future__ import annotations

import os
from pathlib import Path

_CHUNK = 4 << 20
DATA_FILE, DATA_SIZE = "reveal-fault-data", 512 << 20


def disk_of(path: Path, sys: Path = Path("/sys")) -> str | None:
    """``major:minor`` of the whole disk that holds ``path``; None where no disk does (tmpfs)."""
    device = path.stat().st_dev
    entry = sys / "dev/block" / f"{os.major(device)}:{os.minor(device)}"
    if not entry.exists():
        return None
    whole = entry.resolve()
    if (whole / "partition").exists():
        whole = whole.parent
    return (whole / "dev").read_text().strip()


def no_disk(directory: Path) -> str:
    """Why ``directory`` is of no use to a storage fault, "" when it is."""
    if disk_of(directory) is None:
        return f"{directory} lies on no disk; choose another scratch directory"
    free = os.statvfs(directory)
    if free.f_bavail * free.f_frsize < 3 * DATA_SIZE:
        return f"{directory} has less than {3 * DATA_SIZE >> 20} MiB free"
    return ""


def data_file(directory: Path) -> Path:
    """A file of 512 MiB of noise in ``directory``, made at the first call, not in the page cache.

    The caller removes the directory.
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
