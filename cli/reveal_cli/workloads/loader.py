"""A data loader: two readers of 4 MiB blocks with direct I/O, compression, and small matmuls.

Each reader reads five blocks a second.  A validation of 2 s every 25 s reads nothing.
"""

from __future__ import annotations

import mmap
import multiprocessing
import os
import sys
import time
import zlib
from pathlib import Path

import numpy as np

from reveal_cli.faults.disk import data_file
from reveal_cli.workloads.pace import Interval, Pacer, log

READERS, BLOCK, PERIOD_S = 2, 4 << 20, 0.2
VALIDATE_EVERY_S, VALIDATE_S = 25.0, 2.0
_SAMPLE, _SIDE = 1 << 18, 256


def read(path: Path, seed: int) -> None:
    """Read, compress and transform blocks forever."""
    draw = np.random.default_rng(seed)
    file, buffer = os.open(path, os.O_RDONLY | os.O_DIRECT), mmap.mmap(-1, BLOCK)
    blocks = os.fstat(file).st_size // BLOCK
    pace, validation = Pacer(PERIOD_S), Interval(VALIDATE_EVERY_S)
    while True:
        pace.wait()
        start = time.monotonic()
        os.preadv(file, [buffer], int(draw.integers(blocks)) * BLOCK)
        arrived = time.monotonic()
        ratio = len(zlib.compress(buffer[:_SAMPLE], 1)) / _SAMPLE
        norm = transform(np.frombuffer(buffer, np.uint8, _SIDE * _SIDE))
        done = time.monotonic()
        log("block", read=arrived - start, work=done - arrived, ratio=ratio, norm=norm)
        if validation.due():
            validate(draw)


def transform(pixels: np.ndarray[tuple[int], np.dtype[np.uint8]]) -> float:
    """Normalize a sample and multiply its rows: the small matmuls of an augmentation."""
    image = pixels.reshape(_SIDE, _SIDE).astype(np.float32) / 255 - 0.5
    return float(np.linalg.norm(image @ image.T))


def validate(draw: np.random.Generator) -> None:
    """Compute without reading."""
    until = time.monotonic() + VALIDATE_S
    while time.monotonic() < until:
        transform(draw.integers(0, 256, _SIDE * _SIDE, np.uint8))


def main(directory: Path) -> None:
    """Run the readers."""
    path = data_file(directory)
    spawn = multiprocessing.get_context("fork")
    readers = [
        spawn.Process(target=read, args=(path, seed), daemon=True) for seed in range(READERS)
    ]
    for each in readers:
        each.start()
    for each in readers:
        each.join()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
