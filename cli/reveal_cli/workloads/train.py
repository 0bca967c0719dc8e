"""A training job: a small recommender (embeddings and a multilayer perceptron) in numpy.

It runs steps of plain SGD on synthetic clicks.  A step starts every 30 ms, as if an input pipeline
fed it.  An evaluation of 3 s follows every 20 s, and a synced checkpoint of about 60 MB every 30 s.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from reveal_cli.workloads.pace import Interval, Pacer, log

STEP_S, EVALUATE_EVERY_S, EVALUATE_S, CHECKPOINT_EVERY_S = 0.03, 20.0, 3.0, 30.0
_ITEMS, _WIDTH, _HIDDEN, _BATCH = 50_000, 256, 512, 192
_RATE = 0.3

Floats = NDArray[np.float32]
Ids = NDArray[np.int64]


class Model:
    """Two item embeddings, two hidden layers, one logit: whether the pair is clicked."""

    def __init__(self, draw: np.random.Generator) -> None:
        def weights(*shape: int) -> Floats:
            scale = np.float32(1 / np.sqrt(shape[0]))
            return draw.standard_normal(shape, np.float32) * scale

        self.items = weights(_ITEMS, _WIDTH)
        self.layers = [weights(2 * _WIDTH, _HIDDEN), weights(_HIDDEN, _HIDDEN), weights(_HIDDEN, 1)]

    def forward(self, pairs: Ids) -> list[Floats]:
        """Return the activations of each layer: first the input, last the logits."""
        active = [self.items[pairs].reshape(len(pairs), -1)]
        for layer in self.layers[:-1]:
            active.append(np.maximum(active[-1] @ layer, 0))
        return [*active, active[-1] @ self.layers[-1]]

    def step(self, pairs: Ids, clicked: Floats) -> float:
        """Run a step of SGD on the log loss; return the loss before it."""
        active = self.forward(pairs)
        probability = 1 / (1 + np.exp(-np.clip(active[-1], -30, 30)))
        error = ((probability - clicked) / len(pairs)).astype(np.float32)
        for index in range(len(self.layers) - 1, -1, -1):
            gradient = active[index].T @ error
            error = error @ self.layers[index].T
            if index:
                error *= active[index] > 0
            self.layers[index] -= _RATE * gradient
        np.subtract.at(self.items, pairs.ravel(), _RATE * error.reshape(-1, _WIDTH))
        return float(-np.mean(np.log(np.where(clicked > 0, probability, 1 - probability) + 1e-7)))


def batch(draw: np.random.Generator) -> tuple[Ids, Floats]:
    """Return pairs of items, of which few are popular; clicked if their parity is equal."""
    pairs = draw.zipf(1.3, (_BATCH, 2)) % _ITEMS
    return pairs, (pairs.sum(axis=1, keepdims=True) % 2 == 0).astype(np.float32)


def evaluate(model: Model, draw: np.random.Generator) -> float:
    """Return the accuracy over as many batches as fit into ``EVALUATE_S``."""
    until, right, total = time.monotonic() + EVALUATE_S, 0, 0
    while time.monotonic() < until:
        pairs, clicked = batch(draw)
        right += int(((model.forward(pairs)[-1] > 0) == (clicked > 0)).sum())
        total += len(pairs)
    return right / total


def checkpoint(model: Model, path: Path) -> None:
    """Write the model durably, as trainers do: to a new file, synced, then renamed."""
    fresh = path.with_suffix(".new")
    with fresh.open("wb") as file:
        for array in (model.items, *model.layers):
            file.write(array.tobytes())
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


def main(directory: Path) -> None:
    """Train forever."""
    draw = np.random.default_rng(1)
    model, pace = Model(draw), Pacer(STEP_S)
    evaluation, saving = Interval(EVALUATE_EVERY_S), Interval(CHECKPOINT_EVERY_S)
    while True:
        pace.wait()
        start = time.monotonic()
        loss = model.step(*batch(draw))
        log("step", seconds=time.monotonic() - start, loss=loss)
        if evaluation.due():
            log("evaluation", accuracy=evaluate(model, draw))
        if saving.due():
            start = time.monotonic()
            checkpoint(model, directory / "checkpoint")
            log("checkpoint", seconds=time.monotonic() - start)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
