"""The ledger of one second: the time of each subject by part, and what others took from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from reveal_analyzer.arrays import Bools, Floats, Indices
from reveal_analyzer.derive.channel_index import indices_by_metric
from reveal_analyzer.derive.deriver import Second
from reveal_analyzer.ledger.stolen import cpu_channels, stolen_share
from reveal_analyzer.ledger.stopped_time import StoppedTime
from reveal_contract import ledger
from reveal_contract.channels import Channel
from reveal_contract.ledger import Pair, Tier

# what of a subject's time is read, in this order, and what is derived from it
_READ = (*ledger.PARTS, ledger.THREAD_TIME)
COLUMNS = (*_READ, ledger.STOLEN)
_PARTS = len(ledger.PARTS)
_RUN, _STOLEN = COLUMNS.index(ledger.RUN), COLUMNS.index(ledger.STOLEN)
_STOPPED, _SLEEP = COLUMNS.index(ledger.STOPPED), COLUMNS.index(ledger.SLEEP)
_AWAKE = np.array([part in ledger.DESIRED and part != ledger.STOPPED for part in COLUMNS], float)


@dataclass(frozen=True, eq=False)
class PairLayout:
    """The pairs of one metric: their channels, and the rows of victims and culprits.

    A culprit without an account has row -1.  ``named`` marks the pairs of two different subjects
    that both have a name of their own.
    """

    pairs: tuple[Pair, ...]
    channels: Indices
    victims: Indices
    culprits: Indices
    named: Bools


@dataclass(frozen=True, eq=False)
class LedgerLayout:
    """Where the ledger is in a channel table: ``channels`` (subjects, columns that are read).

    ``tier`` is the channel of what the ledger is read from, if there is one; ``cpu`` are those of
    the CPU time of the host (``cpu_channels``).
    """

    subjects: tuple[str, ...]
    channels: Indices
    pairs: Mapping[str, PairLayout]
    tier: int | None
    cpu: Indices

    @classmethod
    def of(cls, channels: Sequence[Channel]) -> LedgerLayout | None:
        """Return the layout of a channel table; None if it has no ledger."""
        by_metric = indices_by_metric(channels)
        found = [
            {channels[index].instance: index for index in by_metric.get(metric, ())}
            for metric in _READ
        ]
        subjects = tuple(name for name in found[0] if all(name in each for each in found))
        if not subjects:
            return None
        rows = {name: row for row, name in enumerate(subjects)}
        return cls(
            subjects,
            np.array([[each[name] for each in found] for name in subjects], np.intp),
            {
                metric: _pair_layout(channels, by_metric.get(metric, ()), rows)
                for metric in ledger.PAIRS
            },
            next(iter(by_metric.get(ledger.TIER, ())), None),
            cpu_channels(channels, by_metric),
        )

    def tier_of(self, channels: Floats) -> Tier:
        """Return what the ledger of a second is read from; the best where that is not known."""
        value = Tier.BPF if self.tier is None else channels[self.tier]
        return Tier(int(value)) if value in set(Tier) else Tier.BPF

    def stolen_share(self, channels: Floats) -> float:
        """Return the share of run time that was stolen; only the clocks of BPF contain it."""
        if not self.cpu.size or self.tier_of(channels) is not Tier.BPF:
            return 0.0
        return stolen_share(channels[self.cpu])


class Accounts(NamedTuple):
    """One second, in ns: ``times`` (subjects, ``COLUMNS``), and of pairs by metric.

    Subjects whose parts do not add up to their thread time are not ``valid``: their times are 0,
    as are those that they lost to others.
    """

    layout: LedgerLayout
    times: Floats
    valid: Bools
    taken: Mapping[str, Floats]
    tier: Tier = Tier.BPF


class AccountReader:
    """Reads the ledger from the seconds of one node, in order; binds to a channel table once.

    Of the time in which threads were stopped, what they would have slept counts as sleep.
    """

    def __init__(self) -> None:
        self._channels: Sequence[Channel] = ()
        self._layout: LedgerLayout | None = None
        self._stopped_time = StoppedTime()

    def read(self, second: Second) -> Accounts | None:
        """Return the ledger of a second; None on a node without one."""
        if second.plan.channels is not self._channels:
            self._channels = second.plan.channels
            self._layout = LedgerLayout.of(self._channels)
        layout = self._layout
        if layout is None:
            return None
        times = np.zeros((len(layout.subjects), len(COLUMNS)))
        times[:, : len(_READ)] = second.channels[layout.channels]
        valid = _adds_up(times)
        times[~valid] = 0.0
        self._split_stopped(layout.subjects, times, valid)
        times[:, _STOLEN] = times[:, _RUN] * layout.stolen_share(second.channels)
        taken = {
            metric: np.where(valid[of.victims], np.nan_to_num(second.channels[of.channels]), 0.0)
            for metric, of in layout.pairs.items()
        }
        return Accounts(layout, times, valid, taken, layout.tier_of(second.channels))

    def _split_stopped(self, subjects: tuple[str, ...], times: Floats, valid: Bools) -> None:
        """Leave of the time in which threads were stopped what was lost; the rest is sleep."""
        stopped = times[:, _STOPPED].copy()
        desired, existed = times @ _AWAKE, times[:, _PARTS]
        lost = self._stopped_time.lost(subjects, valid, desired, stopped, existed)
        times[:, _STOPPED] = lost
        times[:, _SLEEP] += stopped - lost


def _pair_layout(
    channels: Sequence[Channel], indices: Sequence[int], rows: Mapping[str, int]
) -> PairLayout:
    """Return the layout of the pairs whose victim is a subject of the ledger."""
    known = [(index, ledger.pair_of(channels[index].instance)) for index in indices]
    known = [(index, pair) for index, pair in known if pair.victim in rows]
    pairs = tuple(pair for _, pair in known)
    return PairLayout(
        pairs,
        np.array([index for index, _ in known], np.intp),
        np.array([rows[pair.victim] for pair in pairs], np.intp),
        np.array([rows.get(pair.culprit, -1) for pair in pairs], np.intp),
        np.array([_is_named(pair) for pair in pairs], bool),
    )


def _is_named(pair: Pair) -> bool:
    """Return whether two different subjects have names of their own."""
    return pair.victim != pair.culprit and not set(ledger.NAMELESS) & {*pair}


def _adds_up(times: Floats) -> Bools:
    """Return for which subjects the parts add up to their thread time (``ledger.adds_up``).

    A value that was not read is NaN, with which nothing adds up.
    """
    total, expected = times[:, :_PARTS].sum(axis=1), times[:, _PARTS]
    allowed = ledger.TOLERANCE * expected + _PARTS * ledger.RESOLUTION_NS
    result: Bools = np.abs(total - expected) <= allowed
    return result
