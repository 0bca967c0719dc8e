"""The ledger of one second: the time of each subject by part, and what others took from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from reveal_analyzer.arrays import Bools, Floats, Indices
from reveal_analyzer.derive.channel_index import indices_by_metric
from reveal_analyzer.derive.deriver import Second
from reveal_contract import ledger
from reveal_contract.channels import Channel
from reveal_contract.ledger import Pair

# what of a subject's time is read, in this order
COLUMNS = (*ledger.PARTS, ledger.THREAD_TIME)
_PARTS = len(ledger.PARTS)


class PairTimes(NamedTuple):
    """Time in ns that one subject lost to another, (pairs,), of one metric of ``ledger.PAIRS``."""

    pairs: tuple[Pair, ...]
    times: Floats


class Accounts(NamedTuple):
    """One second: ``times`` (subjects, ``COLUMNS``) in ns, and pairs by metric.

    Only subjects whose parts add up to their thread time are in it, and only pairs of such victims.
    """

    subjects: tuple[str, ...]
    times: Floats
    pairs: dict[str, PairTimes]


class AccountReader:
    """Reads the ledger from the seconds of one node; binds to a channel table once."""

    def __init__(self) -> None:
        self._channels: Sequence[Channel] = ()
        self._subjects: tuple[str, ...] = ()
        self._indices: Indices = np.zeros((0, len(COLUMNS)), np.intp)
        self._pairs: dict[str, tuple[tuple[Pair, ...], Indices]] = {}

    def read(self, second: Second) -> Accounts | None:
        """Return the ledger of a second; None on a node without one."""
        if second.plan.channels is not self._channels:
            self._bind(second.plan.channels)
        if not self._subjects:
            return None
        times = second.channels[self._indices]
        kept = _adds_up(times)
        names = tuple(name for name, keep in zip(self._subjects, kept, strict=True) if keep)
        return Accounts(names, times[kept], self._pair_times(second.channels, frozenset(names)))

    def _bind(self, channels: Sequence[Channel]) -> None:
        self._channels = channels
        by_metric = indices_by_metric(channels)
        found = [
            {channels[index].instance: index for index in by_metric.get(metric, ())}
            for metric in COLUMNS
        ]
        self._subjects = tuple(name for name in found[0] if all(name in each for each in found))
        rows = [[each[name] for each in found] for name in self._subjects]
        self._indices = np.array(rows, np.intp).reshape(len(rows), len(COLUMNS))
        self._pairs = {
            metric: (
                tuple(ledger.pair_of(channels[index].instance) for index in by_metric[metric]),
                np.array(by_metric[metric], np.intp),
            )
            for metric in ledger.PAIRS
            if by_metric.get(metric)
        }

    def _pair_times(self, values: Floats, victims: frozenset[str]) -> dict[str, PairTimes]:
        found = {}
        for metric, (pairs, indices) in self._pairs.items():
            times = values[indices]
            kept = [
                position
                for position, pair in enumerate(pairs)
                if pair.victim in victims and times[position] > 0
            ]
            found[metric] = PairTimes(tuple(pairs[k] for k in kept), times[kept])
        return found


def _adds_up(times: Floats) -> Bools:
    """Return for which subjects the parts add up to their thread time (``ledger.adds_up``).

    A value that was not read is NaN, with which nothing adds up.
    """
    total, expected = times[:, :_PARTS].sum(axis=1), times[:, _PARTS]
    allowed = ledger.TOLERANCE * expected + _PARTS * ledger.RESOLUTION_NS
    result: Bools = np.abs(total - expected) <= allowed
    return result
