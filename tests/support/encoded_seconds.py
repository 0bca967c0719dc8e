"""A source from its files to the wire: increments of each second, as both encoders give them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from reveal_collector.readers.raw_slice import RawSlice, SliceOrigin
from reveal_collector.readers.source import Source
from reveal_collector.sampling.sampler import Sampler
from reveal_collector.shipping.native_encoder import encoder_of
from reveal_collector.shipping.numpy_encoder import NumpyEncoder
from reveal_contract.channels import Channel
from reveal_contract.wire import Bools, Ints, decode
from support.sampler_bench import HandClock

ORIGIN = SliceOrigin("n1", bytes(16), 100_000)


def encoded_seconds(
    source: Source, seconds: Sequence[Callable[[], object]]
) -> list[dict[str, int | None]]:
    """Return value (of a counter the increment) by channel for each second; None is missing.

    Each function changes the files before its second; the first one is called before ``open``.  Of
    a fast channel the second has the sum of what is not missing.
    """
    slices: list[RawSlice] = []
    seconds[0]()
    source.open()
    sampler = Sampler("n1", [source], slices.append, clock=HandClock())
    due = sampler.first_due()
    ours, reference = encoder_of(ORIGIN), NumpyEncoder(ORIGIN)
    found = []
    for number, change in enumerate(seconds):
        if number:
            change()
        due = sampler.take_slice(due)
        raw = slices.pop()
        encoded = ours.encode(raw)
        assert encoded == reference.encode(raw)
        message = decode(encoded)
        found.append(
            _by_label(raw.table.fast, message.fast, message.fast_missing)
            | _by_label(raw.table.slow, message.slow[None], message.slow_missing[None])
        )
    source.close()
    return found


def _by_label(channels: Sequence[Channel], values: Ints, missing: Bools) -> dict[str, int | None]:
    known = np.where(missing, 0, values).sum(axis=0)
    return {
        channel.label: None if nothing else int(value)
        for channel, value, nothing in zip(
            channels, known, list(np.all(missing, axis=0)), strict=True
        )
    }
