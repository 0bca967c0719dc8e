"""What faults of this folder share, beside the release on real nodes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_FILE_MIB = 300


@pytest.fixture(scope="session")
def data_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of 300 MiB on the disk, none of it in memory; nodes see the machine's folders."""
    path = tmp_path_factory.mktemp("volume") / "data"
    with path.open("wb") as file:
        for _ in range(_FILE_MIB):
            file.write(os.urandom(1 << 20))
        file.flush()
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return path
