"""Losses of one second: which subject lost which share of its wanted time to which other one."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from reveal_analyzer.arrays import Bools, Floats
from reveal_analyzer.ledger.accounts import COLUMNS, Accounts, PairLayout
from reveal_analyzer.ledger.entitlement import shortfall
from reveal_contract import ledger
from reveal_contract.ledger import Pair
from reveal_contract.time_units import NS_PER_SECOND

# Of a second: time lost delays whoever waits for the victim by no more than this time, so less can
# cost no job 5 % (``loss_watch.LEAST_SHARE``), whatever part it is of a little.
LEAST_LOST = 0.05
_LEAST_SHORTFALL = 0.05  # of its entitlement to CPU time
_ABOVE_SHARE = 1.05  # times its entitlement
_DESIRED = [COLUMNS.index(part) for part in ledger.DESIRED]
_ON_CPU = [COLUMNS.index(part) for part in (ledger.RUN, ledger.WAIT_OTHERS, ledger.WAIT_SELF)]
_RUN = COLUMNS.index(ledger.RUN)


class PairLoss(NamedTuple):
    """A share of the victim's wanted time and the time itself (ns) that the culprit took."""

    pair: Pair
    share: float
    time: float


def losses(
    accounts: Accounts, entitled: Callable[[Floats], Floats], least: float
) -> dict[str, list[PairLoss]]:
    """Return the losses of at least a share of the wanted time, by metric of ``ledger.PAIRS``.

    A victim lost at least ``LEAST_LOST`` to all who are to blame, and for a CPU it got less than
    its share of them.  If somebody who took its CPU time ran more than its own share, nobody else
    is to blame.  ``entitled`` returns the shares of subjects that want so many CPUs.
    """
    desired = accounts.times[:, _DESIRED].sum(axis=1)
    found: dict[str, list[PairLoss]] = {}
    for metric, of in accounts.layout.pairs.items():
        times = accounts.taken[metric]
        counts = of.named & (times > 0) & (times >= least * desired[of.victims])
        if metric == ledger.LOST_CPU and counts.any():
            counts = _unfair(accounts.times, entitled, of, counts)
        counts = _harmful(times, of, counts)
        found[metric] = [
            PairLoss(of.pairs[k], float(times[k] / desired[of.victims[k]]), float(times[k]))
            for k in np.flatnonzero(counts).tolist()
        ]
    return found


def _unfair(
    times: Floats, entitled: Callable[[Floats], Floats], of: PairLayout, counts: Bools
) -> Bools:
    """Return which of these pairs are of a victim below its share and of who is to blame."""
    on_cpu = times[:, _ON_CPU].sum(axis=1) / NS_PER_SECOND
    run = np.asarray(times[:, _RUN]) / NS_PER_SECOND
    shares = entitled(on_cpu)
    counts = counts & (shortfall(shares, run) >= _LEAST_SHORTFALL)[of.victims]
    above = (run > _ABOVE_SHARE * shares)[of.culprits] & (of.culprits >= 0)
    has_greedy = np.zeros(len(times), np.bool_)
    has_greedy[of.victims[counts & above]] = True
    # a CPU that two were bound to: nobody ran more than its share
    result: Bools = counts & (above | ~has_greedy[of.victims])
    return result


def _harmful(times: Floats, of: PairLayout, counts: Bools) -> Bools:
    """Return which of these pairs are of a victim that lost enough to all of them together."""
    lost = np.bincount(of.victims, np.where(counts, times, 0.0))
    result: Bools = counts & (lost >= LEAST_LOST * NS_PER_SECOND)[of.victims]
    return result
