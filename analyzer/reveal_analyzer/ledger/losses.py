"""Losses of one second: which subject lost which share of its wanted time to which other one."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from reveal_analyzer.arrays import Bools, Floats
from reveal_analyzer.ledger.accounts import COLUMNS, Accounts, PairLayout
from reveal_analyzer.ledger.entitlement import ShareTree, shortfall
from reveal_contract import ledger
from reveal_contract.ledger import Pair
from reveal_contract.time_units import NS_PER_SECOND

_DESIRED = [COLUMNS.index(part) for part in ledger.DESIRED]
_ON_CPU = [COLUMNS.index(part) for part in (ledger.RUN, ledger.WAIT_OTHERS, ledger.WAIT_SELF)]
_RUN = COLUMNS.index(ledger.RUN)
_WAIT_SELF = COLUMNS.index(ledger.WAIT_SELF)
_PRIORITY = 4.0  # times the weight of its victim is a priority that somebody has decided


class Limits(NamedTuple):
    """What a loss must reach to count.

    ``share`` is of the victim's wanted time, and ``lost`` of a second: time lost delays whoever
    waits for the victim by no more than this time, so less can cost no job 5 %, whatever part it is
    of a little.  ``shortfall`` is of the victim's entitlement to CPU time, ``above`` is how many
    times its entitlement a culprit ran.  ``placed`` is of the wanted time and of the entitlement,
    and ``placed_lost`` of a second, to somebody who did not run more than its share: threads that
    wake often queue for a moment behind others on a host with CPU time to spare, and lose a part
    of a little.
    """

    share: float
    lost: float
    shortfall: float
    above: float
    placed: float
    placed_lost: float


BEGIN = Limits(share=0.05, lost=0.05, shortfall=0.05, above=1.05, placed=0.15, placed_lost=0.10)
# while it counts: what is close to a limit must not come and go
CONTINUE = Limits(share=0.03, lost=0.03, shortfall=0.03, above=1.03, placed=0.10, placed_lost=0.07)


class PairLoss(NamedTuple):
    """A share of the victim's wanted time and the time itself (ns) that the culprit took."""

    pair: Pair
    share: float
    time: float
    newcomer: bool = False


def _nobody(accounts: Accounts, row: int) -> bool:
    """Return that no culprit is a newcomer."""
    return False


def losses(
    accounts: Accounts,
    tree: Callable[[], ShareTree],
    cpus: float,
    limits: Limits,
    is_newcomer: Callable[[Accounts, int], bool] = _nobody,
) -> dict[str, list[PairLoss]]:
    """Return the losses that reach these limits, by metric of ``ledger.PAIRS``.

    A victim lost enough to all who are to blame together, and for a CPU it got less than
    its share of them.  If somebody who took its CPU time ran more than its own share, nobody else
    is to blame.  Who did not is to blame only for much, only by those whom it does not outweigh,
    and only if their threads do not wait longer for each other.  A newcomer that takes most is to
    blame also by those who get their share, unless it has a much larger weight.
    ``tree`` returns the shares of the subjects in ``cpus``, ``is_newcomer`` says whether the
    culprit of a pair (its row) of lost CPU time is one.
    """
    desired = accounts.times[:, _DESIRED].sum(axis=1)
    found: dict[str, list[PairLoss]] = {}
    for metric, of in accounts.layout.pairs.items():
        times = accounts.taken[metric]
        of_desired = np.divide(
            times, desired[of.victims], out=np.zeros(times.size), where=times > 0
        )
        counts = of.named & (times > 0) & (of_desired >= limits.share)
        new = np.zeros(counts.size, np.bool_)
        if metric == ledger.LOST_CPU and counts.any():
            much = counts & _much(times, of_desired, accounts.times[of.victims, _WAIT_SELF], limits)
            rows = np.flatnonzero(counts)
            new[rows] = [is_newcomer(accounts, row) for row in rows.tolist()]
            by = _Shares(tree(), cpus, limits)
            counts = _unfair(accounts.times, by, of, _Candidates(times, counts, much, new))
        counts = _harmful(times, of, counts, limits.lost)
        found[metric] = [
            PairLoss(of.pairs[k], float(of_desired[k]), float(times[k]), bool(new[k]))
            for k in np.flatnonzero(counts).tolist()
        ]
    return found


def shares_lost(accounts: Accounts, metric: str) -> dict[Pair, float]:
    """Return the share of its wanted time that each victim lost to each culprit."""
    desired = accounts.times[:, _DESIRED].sum(axis=1)
    of, times = accounts.layout.pairs[metric], accounts.taken[metric]
    shares = np.divide(times, desired[of.victims], out=np.zeros(times.size), where=times > 0)
    return dict(zip(of.pairs, shares.tolist(), strict=True))


def _much(times: Floats, of_desired: Floats, waits_self: Floats, limits: Limits) -> Bools:
    """Return which losses also count to somebody who did not run more than its share.

    Threads that wait longer for each other (``waits_self``) are too many for the CPUs they have.
    """
    least = np.maximum(limits.placed_lost * NS_PER_SECOND, waits_self)
    result: Bools = (of_desired >= limits.placed) & (times >= least)
    return result


class _Shares(NamedTuple):
    """The shares of the subjects in so many CPUs, and what is less or more than a share."""

    tree: ShareTree
    cpus: float
    limits: Limits


class _Candidates(NamedTuple):
    """Pairs by the time taken, who lost enough or much, and whose culprit is a newcomer."""

    taken: Floats
    enough: Bools
    much: Bools
    new: Bools


def _unfair(times: Floats, by: _Shares, of: PairLayout, candidates: _Candidates) -> Bools:
    """Return which of these pairs are of a victim below its share and of who is to blame.

    The victim of a newcomer that takes most may have its share.
    """
    taken, counts, much, new = candidates
    on_cpu = times[:, _ON_CPU].sum(axis=1) / NS_PER_SECOND
    run = np.asarray(times[:, _RUN]) / NS_PER_SECOND
    shares, limits = by.tree.entitled(on_cpu, by.cpus), by.limits
    # who is entitled to nearly nothing, as at the idle priority, can lose no more than that
    missing = shortfall(shares, run)
    is_short = (missing >= limits.shortfall) & (shares - run >= limits.lost)
    is_short = is_short[of.victims]
    # nobody took more from others than what it ran above its share
    is_above = (run > limits.above * shares) & (run - shares >= limits.lost)
    above = is_above[of.culprits] & (of.culprits >= 0)
    greedy = counts & is_short & above
    most_taken = np.zeros(len(times))
    np.maximum.at(most_taken, of.victims[greedy], taken[greedy])
    most_taken = most_taken[of.victims]
    # a CPU that two were bound to: nobody ran more than its share, and the victim far less
    bound = is_short & (missing >= limits.placed)[of.victims] & (most_taken == 0.0)
    bound |= new & (taken > most_taken)
    bound &= much
    for k in np.flatnonzero(bound).tolist():
        culprit, victim = int(of.culprits[k]), int(of.victims[k])
        if culprit >= 0:
            times_weight = by.tree.relative_weight(culprit, victim)
            bound[k] = times_weight < _PRIORITY if new[k] else times_weight <= 1.0
    result: Bools = greedy | bound
    return result


def _harmful(times: Floats, of: PairLayout, counts: Bools, least: float) -> Bools:
    """Return which of these pairs are of a victim that lost enough to all of them together."""
    lost = np.bincount(of.victims, np.where(counts, times, 0.0))
    result: Bools = counts & (lost >= least * NS_PER_SECOND)[of.victims]
    return result
