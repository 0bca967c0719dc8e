"""A training loop with a device that is waited for, its steps logged: what the bench watches.

    python -m heartbeatbench.training_loop PLAN.json NAME START_NS FILE

A step reads its batch past the page cache, runs a forward and a backward pass (numpy, or JAX
where it is installed), and waits for what a GPU would do meanwhile; two ranks exchange their
gradients over loopback.  An evaluation of two seconds every 25 s, a checkpoint every 60 s.  In
an episode of its plan a step takes so many percent longer: the wait is made longer by code.
"""

from __future__ import annotations

import importlib
import mmap
import multiprocessing
import os
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from heartbeatbench.schedule import JobPlan, read
from reveal_cli.workloads.pace import Interval, log
from reveal_cli.workloads.train import Model, batch, checkpoint

EVALUATE_EVERY_S, EVALUATE_S, CHECKPOINT_EVERY_S = 25.0, 2.0, 60.0
_BLOCK = 1 << 20
_GRADIENT = 1 << 16  # bytes that ranks exchange
_UPDATE = 3
_DEVICE = 0.85  # of a step the device computes and the host waits
_SCATTER = 0.03  # of the waits, as kernels of changing shapes have

Pass = Callable[[np.random.Generator], None]


def numpy_pass() -> tuple[Pass, Model]:
    """One step of SGD of the small recommender."""
    model = Model(np.random.default_rng(1))

    def step(draw: np.random.Generator) -> None:
        model.step(*batch(draw))

    return step, model


def jax_pass() -> tuple[Pass, Model]:
    """The same shapes as a compiled step of JAX."""
    jax: Any = importlib.import_module("jax")
    numpy: Any = importlib.import_module("jax.numpy")
    weights = [np.random.default_rng(index).standard_normal((512, 512)) / 23 for index in range(3)]

    def loss(layers: Any, rows: Any) -> Any:
        for layer in layers:
            rows = numpy.maximum(rows @ layer, 0)
        return (rows * rows).mean()

    @jax.jit  # type: ignore[untyped-decorator]
    def train(layers: Any, rows: Any) -> Any:
        slopes = jax.grad(loss)(layers, rows)
        return [layer - 1e-3 * slope for layer, slope in zip(layers, slopes, strict=True)]

    state = [numpy.asarray(weight, numpy.float32) for weight in weights]

    def step(draw: np.random.Generator) -> None:
        nonlocal state
        state = train(state, draw.standard_normal((192, 512)).astype(np.float32))
        state[0].block_until_ready()

    return step, Model(np.random.default_rng(1))


class Reader:
    """Batches from a file, past the page cache."""

    def __init__(self, path: Path, seed: int) -> None:
        self._file = os.open(path, os.O_RDONLY | os.O_DIRECT)
        self._blocks = os.fstat(self._file).st_size // _BLOCK
        self._buffer = mmap.mmap(-1, _BLOCK)
        self._draw = np.random.default_rng(seed)

    def read(self) -> None:
        os.preadv(self._file, [self._buffer], int(self._draw.integers(self._blocks)) * _BLOCK)


def exchange(link: socket.socket | None) -> None:
    """Send the gradients, take the other rank's: both go on together."""
    if link is None:
        return
    link.sendall(bytes(_GRADIENT))
    left = _GRADIENT
    while left:
        left -= len(link.recv(left))


def longer(plan: JobPlan, since: float) -> float:
    """The factor of a step's length at this time of the session."""
    now = [episode.percent for episode in plan.episodes if episode.begin <= since < episode.end]
    return 1 + (now[0] / 100 if now else 0.0)


def run(plan: JobPlan, start_ns: int, data: Path, link: socket.socket | None, rank: int) -> None:
    """One rank, for ever; the first one logs, evaluates and saves."""
    step, model = jax_pass() if plan.framework == "jax" else numpy_pass()
    reader, draw = Reader(data, rank), np.random.default_rng(10 + rank)
    step(draw)  # compiled before the first step counts
    evaluation, saving = Interval(EVALUATE_EVERY_S), Interval(CHECKPOINT_EVERY_S)
    while True:
        begun = time.monotonic()
        factor = longer(plan, (time.time_ns() - start_ns) / 1e9)
        for _ in range(plan.accumulate):
            reader.read()
            for _ in range(plan.passes):
                step(draw)
            device = _DEVICE * plan.period / plan.accumulate
            time.sleep(max(0.0, device * draw.normal(1, _SCATTER)))
        if plan.accumulate > 1:  # the update, once a whole step
            for _ in range(_UPDATE * plan.passes):
                step(draw)
        exchange(link)
        time.sleep((time.monotonic() - begun) * (factor - 1))
        if rank == 0:
            log("step", begun=start_time_ns(begun), seconds=time.monotonic() - begun)
        if evaluation.due():
            _evaluate(step, draw)
        if rank == 0 and saving.due():
            checkpoint(model, data.parent / f"checkpoint-{plan.name}")


def start_time_ns(monotonic: float) -> float:
    """A time of the monotonic clock on the wall clock."""
    return time.time() - (time.monotonic() - monotonic)


def _evaluate(step: Pass, draw: np.random.Generator) -> None:
    until = time.monotonic() + EVALUATE_S
    while time.monotonic() < until:
        step(draw)
        time.sleep(0.05)


def main(plan_path: str, name: str, start_ns: str, data: str) -> None:
    plan = next(job for job in read(Path(plan_path)).jobs if job.name == name)
    if plan.ranks == 1:
        run(plan, int(start_ns), Path(data), None, 0)
    here, there = loopback()
    other = multiprocessing.get_context("fork").Process(
        target=run, args=(plan, int(start_ns), Path(data), there, 1), daemon=True
    )
    other.start()
    run(plan, int(start_ns), Path(data), here, 0)


def loopback() -> tuple[socket.socket, socket.socket]:
    """Two ends of a TCP connection over loopback."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        here = socket.create_connection(server.getsockname())
        return here, server.accept()[0]


if __name__ == "__main__":
    main(*sys.argv[1:])
