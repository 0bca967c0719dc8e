"""What the loaders of the training job on a GPU do; the rest of it needs a GPU."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from reveal_cli.workloads import gpu


def test_the_most_frequent_pairs_of_bytes_are_the_lowest_tokens() -> None:
    assert gpu.encode(b"ababcdab").tolist() == [0, 0, 1, 0]


def test_a_batch_is_the_same_each_time_and_differs_from_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu, "_SHARDS", 2)
    monkeypatch.setattr(gpu, "_SHARD", 1 << 14)
    monkeypatch.setattr(gpu, "_SEQUENCES", 4)
    monkeypatch.setattr(gpu, "_READS", 3)
    batches = gpu.Batches(tmp_path)
    batches.write()
    first = batches[0]
    assert first.shape == (4, 513)
    assert first.dtype == np.int64
    assert first.min() >= 0 and first.max() < 8192
    np.testing.assert_array_equal(first, batches[0])
    assert (first != batches[1]).any()
