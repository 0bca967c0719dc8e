"""A data loader: reads a data set from a volume, in another order each time.

``load.py FOLDER MEGABYTES_A_SECOND``; the data set is made first.
"""

import os
import random
import sys
import time
from pathlib import Path

SHARDS, SIZE = 32, 4 << 20
CHUNK = 256 << 10


def make(file: Path) -> None:
    with file.open("wb") as writing:
        writing.write(os.urandom(SIZE))
        writing.flush()
        os.fsync(writing.fileno())


def read(file: Path) -> int:
    """From the disk: what is in the page cache is let go."""
    with file.open("rb") as reading:
        os.posix_fadvise(reading.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        total = 0
        while chunk := reading.read(CHUNK):
            total += len(chunk)
            time.sleep(len(chunk) / rate)
    return total


folder, rate = Path(sys.argv[1]), float(sys.argv[2]) * 1e6
files = [folder / f"shard{number}" for number in range(SHARDS)]
for load_file in files:
    make(load_file)
while True:
    random.shuffle(files)
    print("read", sum(map(read, files)), flush=True)
