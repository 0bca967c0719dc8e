"""How much longer the step of a training loop takes while the programs of the ledger count."""

from __future__ import annotations

import math
import statistics
import subprocess
import sys

from benchmark_report import Row
from ledgerbench import live

_SECONDS = 3.0
_T95 = 2.1  # of Student's distribution, for about 20 pairs
_LOOP = """
import sys, time
import numpy
weights = numpy.random.default_rng(1).random((192, 192))
data = bytearray(1 << 20)
end, steps = time.monotonic() + float(sys.argv[1]), 0
while time.monotonic() < end:
    for _ in range(4):
        weights @ weights
        time.sleep(0)
    data[:] = bytes(len(data))
    time.sleep(0.001)
    steps += 1
print(steps, time.process_time())
"""


def slowdown(rounds: int) -> Row:
    """Return the paired difference of the CPU time of a step, with the programs and without.

    The order changes with each round.
    """
    percents: list[float] = []
    for number in range(rounds):
        pair = {is_on: _step_s(is_on=is_on) for is_on in (number % 2 == 0, number % 2 == 1)}
        percents.append(100 * (pair[True] / pair[False] - 1))
    half = _T95 * statistics.stdev(percents) / math.sqrt(rounds)
    mean = statistics.fmean(percents)
    return {
        "rounds": rounds,
        "slowdown_percent": round(mean, 3),
        "low_percent": round(mean - half, 3),
        "high_percent": round(mean + half, 3),
    }


def _step_s(*, is_on: bool) -> float:
    """Return the CPU time of a step in s."""
    if not is_on:
        return _run()
    programs, _ = live.load()
    try:
        programs.attach()
        return _run()
    finally:
        programs.close()


def _run() -> float:
    command = [sys.executable, "-c", _LOOP, str(_SECONDS)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    steps, used = done.stdout.split()
    return float(used) / int(steps)
