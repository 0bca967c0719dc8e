"""The workloads: real training and inference, the same each time they are started.

    python -m paperbench.workloads NAME DIRECTORY

Each runs for ever and logs a line when its first piece of work is done: what it had to build or
compile is behind it then.
"""

from __future__ import annotations

import importlib
import importlib.util
import mmap
import os
import pickle
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heartbeatbench.training_loop import jax_pass
from reveal_cli.workloads import train as recommender
from reveal_cli.workloads.pace import Interval, Pacer, log

Floats = NDArray[np.float32]
_BLOCK = 1 << 20
_WIDTH, _LAYERS = 384, 6  # of the language model
_PROMPT, _ANSWER, _REQUEST_S = 96, 64, 1.6


def clicks(draw: np.random.Generator, rows: int) -> tuple[Floats, NDArray[np.bool_]]:
    """A table of 24 columns and a label that depends on pairs of them."""
    table = draw.standard_normal((rows, 24)).astype(np.float32)
    return table, (table[:, :8] * table[:, 8:16]).sum(axis=1) > 0


def forest(rows: int, trees: int) -> tuple[Any, Floats]:
    """A fitted random forest and the table it was fitted on."""
    ensemble: Any = importlib.import_module("sklearn.ensemble")
    table, labels = clicks(np.random.default_rng(1), rows)
    classifier = ensemble.RandomForestClassifier(trees, max_depth=12, n_jobs=1, random_state=1)
    return classifier.fit(table, labels), table


def forest_train(directory: Path) -> None:
    """Fits a forest, scores it, saves it durably, rests."""
    while True:
        fitted, table = forest(6000, 10)
        fitted.predict(table[:3000])
        with (directory / "forest").open("wb") as file:
            pickle.dump(fitted, file)
            file.flush()
            os.fsync(file.fileno())
        log("fitted")
        time.sleep(0.6)


def forest_serve(_: Path) -> None:
    """Answers a batch of 256 rows every 60 ms, one of 4096 every five seconds."""
    fitted, table = forest(8000, 30)
    pace, large = Pacer(0.06), Interval(5.0)
    while True:
        pace.wait()
        fitted.predict_proba(table[: 4096 if large.due() else 256])
        log("answered")


def stream_train(directory: Path) -> None:
    """A linear model fitted on blocks read past the page cache; every ten seconds an epoch ends."""
    models: Any = importlib.import_module("sklearn.linear_model")
    path = directory / "samples"
    draw = np.random.default_rng(2)
    path.write_bytes(draw.integers(0, 255, 64 * _BLOCK, np.uint8).tobytes())
    os.sync()
    model, epoch, pace = models.SGDClassifier(random_state=1), Interval(10.0), Pacer(0.1)
    file, buffer = os.open(path, os.O_RDONLY | os.O_DIRECT), mmap.mmap(-1, _BLOCK)
    while True:
        pace.wait()
        os.preadv(file, [buffer], int(draw.integers(64)) * _BLOCK)
        rows = np.frombuffer(buffer, np.uint8).reshape(-1, 128)[:2048].astype(np.float32) / 255
        model.partial_fit(rows, rows[:, 0] > rows[:, 1], classes=[False, True])
        log("batch")
        if epoch.due():
            for _ in range(8):
                model.score(rows, rows[:, 0] > rows[:, 1])
            time.sleep(0.5)


class LanguageModel:
    """A decoder of random weights with one attention head a layer and a cache of what was read."""

    def __init__(self) -> None:
        draw = np.random.default_rng(3)

        def weights(rows: int, columns: int) -> Floats:
            return draw.standard_normal((rows, columns), np.float32) / np.float32(np.sqrt(rows))

        self.layers = [
            (
                weights(_WIDTH, 3 * _WIDTH),
                weights(_WIDTH, 4 * _WIDTH),
                weights(4 * _WIDTH, _WIDTH),
            )
            for _ in range(_LAYERS)
        ]

    def read(self, tokens: Floats, cache: list[tuple[Floats, Floats]]) -> Floats:
        """Take in tokens (n, width) after those cached, and give what follows the last."""
        state = tokens
        for index, (attention, up, down) in enumerate(self.layers):
            query, key, value = np.split(state @ attention, 3, axis=1)
            if len(cache) > index:
                key = np.concatenate([cache[index][0], key])
                value = np.concatenate([cache[index][1], value])
                cache[index] = key, value
            else:
                cache.append((key, value))
            looks = query @ key.T / np.float32(np.sqrt(_WIDTH))
            shares = np.exp(looks - looks.max(axis=1, keepdims=True))
            state = state + (shares / shares.sum(axis=1, keepdims=True)) @ value
            state = state + np.maximum(state @ up, 0) @ down
            state = state / np.abs(state).max()
        return state[-1:]


def decode(_: Path) -> None:
    """A request every 1.6 s: its prompt read at once, its answer made token by token."""
    model, pace = LanguageModel(), Pacer(_REQUEST_S)
    draw = np.random.default_rng(4)
    while True:
        pace.wait()
        cache: list[tuple[Floats, Floats]] = []
        token = model.read(draw.standard_normal((_PROMPT, _WIDTH)).astype(np.float32), cache)
        for _token in range(_ANSWER):
            token = model.read(token, cache)
        log("answered")


def retrieve(_: Path) -> None:
    """The ten nearest of 150,000 items for four queries every 120 ms; bursts of 40 every 6 s."""
    draw = np.random.default_rng(5)
    items = draw.standard_normal((150_000, 96)).astype(np.float32)
    pace, burst = Pacer(0.12), Interval(6.0)
    while True:
        pace.wait()
        for _query in range(10 if burst.due() else 1):
            scores = items @ draw.standard_normal((96, 4)).astype(np.float32)
            np.argpartition(scores, -10, axis=0)
        log("answered")


def jax_train(_: Path) -> None:
    """Steps of a compiled training loop; an evaluation of a second every eight."""
    step, _model = jax_pass()
    draw, pace, evaluation = np.random.default_rng(6), Pacer(0.05), Interval(8.0)
    while True:
        pace.wait()
        step(draw)
        log("step")
        if evaluation.due():
            until = time.monotonic() + 1.0
            while time.monotonic() < until:
                np.linalg.norm(draw.standard_normal((192, 512)))


def jax_serve(_: Path) -> None:
    """A compiled convolution over 16 images every 200 ms."""
    jax: Any = importlib.import_module("jax")
    draw = np.random.default_rng(7)
    kernels = [draw.standard_normal((3, 3, c, 16)).astype(np.float32) / 8 for c in (3, 16, 16)]

    @jax.jit  # type: ignore[untyped-decorator]
    def answer(images: Any) -> Any:
        for kernel in kernels:
            layout = ("NHWC", "HWIO", "NHWC")
            images = jax.lax.conv_general_dilated(
                images, kernel, (1, 1), "SAME", dimension_numbers=layout
            )
            images = jax.numpy.maximum(images, 0)
        return images.mean(axis=(1, 2))

    pace = Pacer(0.2)
    while True:
        pace.wait()
        answer(draw.standard_normal((16, 48, 48, 3)).astype(np.float32)).block_until_ready()
        log("answered")


TRAINING: dict[str, Callable[[Path], None]] = {
    "train": recommender.main,
    "forest_train": forest_train,
    "stream_train": stream_train,
    "jax_train": jax_train,
}
INFERENCE: dict[str, Callable[[Path], None]] = {
    "forest_serve": forest_serve,
    "decode": decode,
    "retrieve": retrieve,
    "jax_serve": jax_serve,
}


def names() -> list[str]:
    """The workloads that can run here: those of JAX only where it is installed."""
    jax = importlib.util.find_spec("jax") is not None
    return [name for name in (*TRAINING, *INFERENCE) if jax or not name.startswith("jax")]


if __name__ == "__main__":
    (TRAINING | INFERENCE)[sys.argv[1]](Path(sys.argv[2]))
