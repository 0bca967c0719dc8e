"""A training job: epochs of steps, an evaluation, a checkpoint.  ``train.py PERIOD_S FOLDER``."""

import os
import sys
import time
from pathlib import Path

import numpy

EPOCH_S, EVALUATION_S = 60.0, 10.0
CHECKPOINT = bytes(16 << 20)


def steps(seconds: float, products: int) -> int:
    """As many as fit, each of so many products and then a wait for the next."""
    done, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.monotonic()
        for _ in range(products):
            weights @ weights
        done += 1
        time.sleep(max(0.0, period - (time.monotonic() - began)))
    return done


def checkpoint(file: Path) -> None:
    with file.open("wb") as writing:
        writing.write(CHECKPOINT)
        writing.flush()
        os.fsync(writing.fileno())


period, folder = float(sys.argv[1]), Path(sys.argv[2])
weights = numpy.random.rand(300, 300)
while True:
    print("steps", steps(EPOCH_S, 8), "evaluated", steps(EVALUATION_S, 3), flush=True)
    checkpoint(folder / "checkpoint")
