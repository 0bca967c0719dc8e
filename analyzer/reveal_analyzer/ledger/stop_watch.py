"""Subjects that are stopped again and again while they work: a signature without a baseline.

A job that is stopped for good has stalled, which its CPU time shows.  One that is stopped for a
part of each second only seems to work less; who stops it (``cpulimit``, a debugger, a freezer) is
not known.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from reveal_analyzer.derive.columns import LEVEL, Column
from reveal_analyzer.hypotheses.model import HypothesisRule
from reveal_analyzer.hypotheses.signature_matcher import Harmed, Matches, SignatureMatch
from reveal_analyzer.ledger.accounts import COLUMNS, Accounts
from reveal_analyzer.ledger.loss_watch import NOTHING, rule_of
from reveal_analyzer.ledger.losses import BEGIN, CONTINUE, Limits
from reveal_analyzer.ledger.totals import Totals, summed
from reveal_contract import catalogue, ledger
from reveal_contract.time_units import NS_PER_SECOND

_RUN, _STOPPED = COLUMNS.index(ledger.RUN), COLUMNS.index(ledger.STOPPED)
_RAN = 0.01 * NS_PER_SECOND  # in a second in which a subject worked, too
_MILLION = 1e6


class StopWatch:
    """Watches which subjects of one node are stopped while they work.

    The cause is that of ``rules`` whose signature names ``ledger.STOPPED_SHARE``.  Its limits
    are for the share over all seconds of its hold.
    """

    def __init__(self, rules: Sequence[HypothesisRule]) -> None:
        self._rule = rule_of(ledger.STOPPED_SHARE, rules)
        self._seconds: deque[tuple[int, Accounts]] = deque()
        self._stops: dict[str, list[int]] = {}  # the latest seconds of each subject

    def match(self, accounts: Accounts, start_ns: int) -> Matches:
        """Return the subjects that this second and those before it show as stopped."""
        rule = self._rule
        if rule is None or rule.certain is None:
            return NOTHING
        self._add(accounts, start_ns, rule.certain.of)
        if not self._stops:
            return NOTHING
        totals = summed(second for _, second in self._seconds)
        need, found = rule.certain.need, Matches([], [])
        for name, times in self._stops.items():
            if times[-1] != start_ns:  # the seconds between two stops are calm ones
                continue
            since = summed(second for time, second in self._seconds if time >= times[0])
            match, share = (
                _match(rule, name, since.share(name, ledger.STOPPED)),
                totals.share(name, ledger.STOPPED),
            )
            if len(times) >= need and _reaches(totals, name, share, BEGIN):
                found.sustained.append(match)
            if len(times) >= need - 1 and _reaches(totals, name, share, CONTINUE):
                found.present.append(match)
        return found

    def _add(self, accounts: Accounts, start_ns: int, seconds: int) -> None:
        """Add a second, and forget those that are too old, or from before the clock was set."""
        since_ns = start_ns - seconds * NS_PER_SECOND + NS_PER_SECOND // 2
        self._seconds = deque(e for e in self._seconds if since_ns <= e[0] < start_ns)
        self._seconds.append((start_ns, accounts))
        stopped = {name: [start_ns] for name in _stopped(accounts)}
        for name, times in self._stops.items():
            recent = [time for time in times if since_ns <= time < start_ns]
            if recent:
                stopped[name] = recent + stopped.get(name, [])
        self._stops = stopped


def _stopped(accounts: Accounts) -> list[str]:
    """Return the subjects that worked in this second, and lost a part of it by being stopped."""
    times = accounts.times
    rows = (times[:, _STOPPED] >= CONTINUE.lost * NS_PER_SECOND) & (times[:, _RUN] >= _RAN)
    names = (accounts.layout.subjects[row] for row in rows.nonzero()[0].tolist())
    return [name for name in names if name not in ledger.NAMELESS]


def _reaches(totals: Totals, name: str, share: float, limits: Limits) -> bool:
    lost = totals.time(name, ledger.STOPPED) / totals.seconds
    return share >= limits.share and lost >= limits.lost * NS_PER_SECOND


def _match(rule: HypothesisRule, name: str, share: float) -> SignatureMatch:
    column = Column(catalogue.find(ledger.STOPPED_SHARE), name, LEVEL)
    return SignatureMatch(rule, (column,), name, share * _MILLION, (Harmed(name, share),))
