"""What a job loses while the collector runs: paired blocks of the same work, on all cores.

The workers (a numpy training step; a loop over arrays larger than the caches) never stop; the
collector is stopped (SIGSTOP) and continued (SIGCONT) block by block, in a random order for
each pair, so that drift and neighbours meet both halves alike.  ``slowdown`` is the median over
pairs of the share of steps lost with the collector running, with a 95 % bootstrap interval: on a
shared machine, a neighbour's burst in one block is not the collector's.  ``mean`` has the bursts.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from ctypes import c_longlong
from typing import Any

import numpy as np

from benchmark_report import Row, report, use_single_core
from reveal_cli.broker import Broker

SETTLE_S, PAUSE_S = 8.0, 0.3
PERIODS_MS = (100, 500, 1000)


def train(count: Any) -> None:
    """Forward and backward through two layers, over and over; ``count`` gets the steps."""
    use_single_core()
    rng = np.random.default_rng(0)
    inputs, first, second = (rng.normal(size=size) for size in ((64, 256), (256, 512), (512, 64)))
    while True:
        hidden = np.maximum(inputs @ first, 0)
        error = hidden @ second - inputs[:, :64]
        back = (error @ second.T) * (hidden > 0)
        second = second - 1e-6 * hidden.T @ error
        first = first - 1e-6 * inputs.T @ back
        count.value += 1


def stream(count: Any) -> None:
    """Triad over arrays that no cache holds: bound by memory bandwidth."""
    use_single_core()
    left, right, out = (np.ones(1 << 21) for _ in range(3))
    while True:
        np.multiply(right, 3.0, out=out)
        np.add(left, out, out=out)
        count.value += 1


WORK: dict[str, Callable[[Any], None]] = {"training step": train, "memory-bound loop": stream}


@contextmanager
def working(work: Callable[[Any], None]) -> Iterator[Callable[[], int]]:
    """A worker on every core; gives what they did so far."""
    counts = [multiprocessing.RawValue(c_longlong) for _ in range(os.cpu_count() or 1)]
    workers = [multiprocessing.Process(target=work, args=(each,), daemon=True) for each in counts]
    for worker in workers:
        worker.start()
    try:
        yield lambda: sum(each.value for each in counts)
    finally:
        for worker in workers:
            worker.kill()
            worker.join()


@contextmanager
def collecting(url: str, period_ms: int) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "reveal_collector", "--node", "bench", "--redis-url", url]
    collector = subprocess.Popen([*command, "--sample-period-milliseconds", str(period_ms)])
    try:
        time.sleep(SETTLE_S)
        if collector.poll() is not None:
            raise RuntimeError("the collector did not start")
        yield collector
    finally:
        collector.send_signal(signal.SIGCONT)
        collector.terminate()
        collector.wait()


def rate(done: Callable[[], int], seconds: float) -> float:
    """Steps a second over a block."""
    begin, before = time.monotonic(), done()
    time.sleep(seconds)
    return (done() - before) / (time.monotonic() - begin)


def pair(collector: subprocess.Popen[bytes], done: Callable[[], int], seconds: float) -> float:
    """The share of steps lost while the collector ran, of one pair of blocks."""
    rates = {}
    for running in random.sample((True, False), 2):
        collector.send_signal(signal.SIGCONT if running else signal.SIGSTOP)
        time.sleep(PAUSE_S)
        rates[running] = rate(done, seconds)
    return 1 - rates[True] / rates[False]


def interval(values: Sequence[float]) -> tuple[float, float]:
    """95 % bootstrap interval of the median."""
    rng = np.random.default_rng(1)
    medians = np.median(rng.choice(np.array(values), (4000, len(values))), axis=1)
    low, high = np.percentile(medians, [2.5, 97.5])
    return float(low), float(high)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=1.5, help="a block")
    given = parser.parse_args()
    rows: list[Row] = []
    with Broker() as broker:
        for name, work in WORK.items():
            for period in PERIODS_MS:
                with working(work) as done, collecting(broker.url, period) as collector:
                    lost = [pair(collector, done, given.seconds) for _ in range(given.pairs)]
                low, high = interval(lost)
                shares = (np.median(lost), low, high, np.mean(lost))
                figures = zip(("slowdown, %", "from", "to", "mean, %"), shares, strict=True)
                percents = {what: 100 * float(share) for what, share in figures}
                rows.append({"work": name, "period, ms": period, "pairs": given.pairs, **percents})
                print(rows[-1], file=sys.stderr)
    report("interference", rows, cores=os.cpu_count())


if __name__ == "__main__":
    main()
