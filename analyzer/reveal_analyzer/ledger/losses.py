"""Losses of one second: which subject lost which share of its desired time to which other one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reveal_analyzer.arrays import Floats
from reveal_analyzer.ledger.accounts import COLUMNS, Accounts
from reveal_analyzer.ledger.entitlement import shortfall
from reveal_contract import ledger
from reveal_contract.ledger import Pair
from reveal_contract.time_units import NS_PER_SECOND

LEAST_DESIRED = 0.05  # CPUs; who wants less is no victim
_LEAST_SHORTFALL = 0.05  # of its entitlement to CPU time
_NO_CULPRITS = frozenset({ledger.KERNEL, ledger.OTHER})  # nobody whom one could move or limit
_DESIRED = [COLUMNS.index(part) for part in ledger.DESIRED]
_ON_CPU = [COLUMNS.index(part) for part in (ledger.RUN, ledger.WAIT_OTHERS, ledger.WAIT_SELF)]
_RUN = COLUMNS.index(ledger.RUN)


class PairLoss(NamedTuple):
    """A share of the victim's desired time and the time itself (ns) that the culprit took."""

    pair: Pair
    share: float
    time: float


def losses(accounts: Accounts, cpus: float) -> dict[str, list[PairLoss]]:
    """Return the losses of a second by metric of ``ledger.PAIRS``.

    A victim wants some time, and for a CPU it got less than its share of them.
    """
    desired = accounts.times[:, _DESIRED].sum(axis=1)
    short = _shortfall(accounts.times, cpus)
    rows = {name: row for row, name in enumerate(accounts.subjects)}
    found: dict[str, list[PairLoss]] = {}
    for metric, (pairs, times) in accounts.pairs.items():
        found[metric] = [
            PairLoss(pair, time / float(desired[row]), time)
            for pair, time in zip(pairs, times.tolist(), strict=True)
            if (row := rows[pair.victim]) is not None
            and desired[row] >= LEAST_DESIRED * NS_PER_SECOND
            and (metric != ledger.LOST_CPU or short[row] >= _LEAST_SHORTFALL)
            and _is_loss(pair)
        ]
    return found


def _is_loss(pair: Pair) -> bool:
    """Return whether one named subject lost to another; what the kernel wants is no harm."""
    return pair.culprit not in _NO_CULPRITS | {pair.victim} and pair.victim not in _NO_CULPRITS


def _shortfall(times: Floats, cpus: float) -> Floats:
    on_cpu = times[:, _ON_CPU].sum(axis=1) / NS_PER_SECOND
    return shortfall(on_cpu, np.asarray(times[:, _RUN]) / NS_PER_SECOND, cpus)
