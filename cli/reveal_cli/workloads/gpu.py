"""A training job on a GPU: a small language model in PyTorch, in bf16, fed by loader processes.

Loaders read compressed text, unpack it and encode it into tokens: real CPU work, without which the
GPU waits.  A checkpoint follows every 30 s.  On a large host the job keeps to a few CPUs, as a
container with a CPU set does.
"""

from __future__ import annotations

import os
import sys
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reveal_cli.workloads.pace import READY, Interval, log

CPUS, LOADERS, CHECKPOINT_EVERY_S = 6, 5, 30.0
_READY_STEPS = 10
_VOCABULARY, _LENGTH, _SEQUENCES = 8192, 512, 256
_WIDTH, _HEADS, _LAYERS, _RATE = 1024, 16, 8, 1e-4
_SHARDS, _SHARD, _READS = 32, 1 << 20, 80  # files, bytes of each, files a batch

Tokens = NDArray[np.int64]


class Batches:
    """Batches by number, as a data set of PyTorch: each from several files of compressed text."""

    def __init__(self, directory: Path) -> None:
        self._paths = [directory / f"shard-{number}" for number in range(_SHARDS)]

    def write(self) -> None:
        """Write the files: words drawn from a small vocabulary."""
        draw = np.random.default_rng(1)
        words = draw.integers(97, 123, (4096, 8), np.uint8)
        for path in self._paths:
            text = words[draw.zipf(1.2, _SHARD // 8) % len(words)]
            path.write_bytes(zlib.compress(text.tobytes(), 6))

    def __len__(self) -> int:
        return 1 << 30

    def __getitem__(self, number: int) -> Tokens:
        draw = np.random.default_rng(number)
        chosen = draw.integers(len(self._paths), size=_READS)
        texts = (zlib.decompress(self._paths[index].read_bytes()) for index in chosen)
        size = _LENGTH + 1  # a token more than is read, as each predicts the next
        part = -(-_SEQUENCES * size // _READS)
        tokens = np.concatenate([encode(text)[:part] for text in texts])
        return tokens[: _SEQUENCES * size].reshape(_SEQUENCES, size)


def encode(text: bytes) -> Tokens:
    """Return text as tokens: pairs of bytes, the most frequent of which have the lowest numbers."""
    pairs = np.frombuffer(text, np.uint16)
    order = np.argsort(-np.bincount(pairs, minlength=1 << 16), kind="stable")
    ranks = np.empty(1 << 16, np.int64)
    ranks[order] = np.arange(1 << 16)
    return np.minimum(ranks[pairs], _VOCABULARY - 1)


class Trainer:
    """The model, its optimizer, and one step of both."""

    def __init__(self, torch: Any) -> None:
        nn, self._torch = torch.nn, torch
        layer = nn.TransformerEncoderLayer(
            _WIDTH, _HEADS, 4 * _WIDTH, dropout=0.0, batch_first=True, norm_first=True
        )
        self.model = nn.ModuleList(
            [
                nn.Embedding(_VOCABULARY, _WIDTH),
                nn.TransformerEncoder(layer, _LAYERS, enable_nested_tensor=False),
                nn.Linear(_WIDTH, _VOCABULARY),
            ]
        ).cuda()
        self._mask = nn.Transformer.generate_square_subsequent_mask(_LENGTH, device="cuda")
        self._optimizer = torch.optim.AdamW(self.model.parameters(), lr=_RATE, fused=True)

    def step(self, tokens: Any) -> float:
        """Train on one batch of pinned memory; return the loss once the GPU has finished."""
        torch = self._torch
        tokens = tokens.cuda(non_blocking=True)
        embed, encoder, head = self.model
        with torch.autocast("cuda", torch.bfloat16):
            hidden = encoder(embed(tokens[:, :-1]), mask=self._mask, is_causal=True)
            loss = torch.nn.functional.cross_entropy(
                head(hidden).flatten(0, 1), tokens[:, 1:].flatten()
            )
        loss.backward()
        self._optimizer.step()
        self._optimizer.zero_grad()
        return float(loss.item())

    def save(self, path: Path) -> None:
        """Write the weights in bf16 durably: to a new file, synced, then renamed."""
        torch, fresh = self._torch, path.with_suffix(".new")
        weights = {name: each.to(torch.bfloat16).cpu() for name, each in self._weights()}
        with fresh.open("wb") as file:
            torch.save(weights, file)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)

    def _weights(self) -> Iterator[tuple[str, Any]]:
        yield from self.model.state_dict().items()


def main(directory: Path) -> None:
    """Train forever."""
    cpus = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, cpus[-CPUS:])
    batches = Batches(directory)
    batches.write()
    import torch.utils.data  # noqa: PLC0415 - only this job needs it

    loader = iter(
        torch.utils.data.DataLoader(batches, batch_size=None, num_workers=LOADERS, pin_memory=True)
    )
    trainer, saving, done = Trainer(torch), Interval(CHECKPOINT_EVERY_S), time.monotonic()
    for number, tokens in enumerate(loader):
        arrived = time.monotonic()
        loss = trainer.step(tokens)
        start, done = done, time.monotonic()
        log("step", seconds=done - start, wait=arrived - start, loss=loss)
        if number == _READY_STEPS:
            (directory / READY).touch()
        if saving.due():
            trainer.save(directory / "checkpoint")
            log("checkpoint", seconds=time.monotonic() - done)
            done = time.monotonic()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
