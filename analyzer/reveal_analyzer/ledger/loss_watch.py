"""Subjects that take time from others: signatures without a baseline, by victim and culprit.

A subject that lost a part of its wanted time to one other subject in 5 of the last 10 seconds is
its victim.  Waiting as such is no sign on a busy host, but who took the time is: the pair is judged
by itself, from the first second on, whatever is normal on this node.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial

from reveal_analyzer.derive.columns import LEVEL, Column
from reveal_analyzer.hypotheses.model import HypothesisRule
from reveal_analyzer.hypotheses.signature_matcher import Harmed, Matches, SignatureMatch
from reveal_analyzer.ledger.accounts import Accounts
from reveal_analyzer.ledger.announced_shares import AnnouncedShares, ShareSource, equal_shares
from reveal_analyzer.ledger.entitlement import ShareTree
from reveal_analyzer.ledger.history import LedgerHistory
from reveal_analyzer.ledger.interrupts import interrupts_harm
from reveal_analyzer.ledger.losses import BEGIN, CONTINUE, PairLoss, losses, shares_lost
from reveal_analyzer.ledger.newcomers import Newcomers
from reveal_analyzer.state.tree import StateTree, section
from reveal_contract import catalogue, ledger
from reveal_contract.ledger import Pair, Tier
from reveal_contract.time_units import NS_PER_SECOND

_MOST_CULPRITS = 8  # of one cause in one second, who takes most first
_MOST_HARMED = 5
_TAKEN = dict(zip(ledger.PAIRS, ledger.TAKEN, strict=True))
NOTHING = Matches([], [])

_Key = tuple[str, Pair]
_ByCulprit = Mapping[str, list[PairLoss]]


class LossWatch:
    """Watches who takes time from whom on one node.

    The causes are those of ``rules`` whose signature names a metric of the ledger, so that a file
    of causes can replace or remove them.  ``shares`` returns the CPU shares announced now.
    """

    def __init__(self, rules: Sequence[HypothesisRule], shares: ShareSource = equal_shares) -> None:
        self._shares = AnnouncedShares(shares)
        found = ((metric, rule_of(taken, rules)) for metric, taken in _TAKEN.items())
        self._rules = {metric: rule for metric, rule in found if rule is not None}
        self._counted: dict[_Key, deque[int]] = {}
        self._history = LedgerHistory()
        self._newcomers = Newcomers(self._history)
        self._lasted: dict[tuple[str, str], int] = {}  # when, by metric and culprit
        # parts of lost time that nobody lost in this second more than before, as was measured
        self.harmless_parts: frozenset[str] = frozenset()

    def save(self) -> StateTree:
        """Return what was before, and the newcomers; the rest is found again in seconds."""
        return {"newcomers": self._newcomers.save(), "history": self._history.save()}

    def restore(self, tree: StateTree) -> None:
        """Continue with what ``save`` returned; raises ``StateError``."""
        self._newcomers.restore(section(tree, "newcomers"))
        if "history" in tree:  # an earlier version did not save it
            self._history.restore(section(tree, "history"))

    def match(self, accounts: Accounts, cpus: int, start_ns: int) -> Matches:
        """Return the culprits of this second as signatures: those that last, and all."""
        self.harmless_parts = frozenset()
        if not self._rules:
            return NOTHING
        self._forget(start_ns)
        sustained: list[SignatureMatch] = []
        present: list[SignatureMatch] = []
        tree = partial(self._shares.tree, accounts.layout, start_ns)
        for metric, found in self._counting(accounts, tree, cpus).items():
            rule = self._rules.get(metric)
            if rule is None:
                continue
            lasting, now = self._culprits(metric, rule, found, start_ns)
            self._lasted |= dict.fromkeys(((metric, name) for name in lasting), start_ns)
            present += _matches(rule, _TAKEN[metric], now, CONTINUE.lost / BEGIN.lost)
            sustained += _matches(rule, _TAKEN[metric], lasting, 1.0)
        return Matches(sustained, present)

    def _counting(
        self, accounts: Accounts, tree: Callable[[], ShareTree], cpus: int
    ) -> dict[str, list[PairLoss]]:
        """Return the losses that begin to count or continue to, by metric of the pairs.

        Culprits that others displaced are left out, unless they have lasted already.
        """
        counting = losses(accounts, tree, cpus, BEGIN, self._newcomers.beginning)
        if self._counted:  # not in most seconds
            continuing = losses(accounts, tree, cpus, CONTINUE, self._newcomers.known)
            for metric, found in counting.items():
                new = {loss.pair for loss in found}
                found += [
                    loss for loss in continuing[metric]
                    if loss.pair not in new and (metric, loss.pair) in self._counted
                ]  # fmt: skip
        found = counting[ledger.LOST_CPU]
        displaced = self._displaced(accounts, found)
        counting[ledger.LOST_CPU] = [loss for loss in found if loss.pair not in displaced]
        found = counting[ledger.LOST_DISK]
        provoked = self._provoked(accounts, found)
        counting[ledger.LOST_DISK] = [loss for loss in found if loss.pair not in provoked]
        if accounts.valid.any():  # the ledger was read
            self._add(accounts, counting[ledger.LOST_CPU], displaced, provoked)
        return counting

    def _provoked(self, accounts: Accounts, found: Sequence[PairLoss]) -> set[Pair]:
        """Return the pairs whose victim came to a disk that others used, and takes as much."""
        if not found:
            return set()
        shares = shares_lost(accounts, ledger.LOST_DISK)
        return {
            loss.pair for loss in found if self._newcomers.provoked(accounts, loss.pair, shares)
        }

    def _displaced(self, accounts: Accounts, found: Sequence[PairLoss]) -> set[Pair]:
        """Return the pairs whose culprits others displaced and have not lasted yet."""
        if not found:
            return set()
        rows = {pair: row for row, pair in enumerate(accounts.layout.pairs[ledger.LOST_CPU].pairs)}
        comes = any(loss.newcomer for loss in found)
        return {
            loss.pair for loss in found
            if not loss.newcomer
            and (ledger.LOST_CPU, loss.pair.culprit) not in self._lasted
            and self._newcomers.displaced(accounts, rows[loss.pair], comes)
        }  # fmt: skip

    def _add(
        self,
        accounts: Accounts,
        counted: Sequence[PairLoss],
        displaced: Collection[Pair],
        provoked: Collection[Pair],
    ) -> None:
        """Add this second to what is known of the node, once it was compared with that."""
        is_measured = accounts.tier is Tier.BPF and self._history.ready
        if is_measured and not interrupts_harm(accounts, self._history, counted):
            self.harmless_parts = frozenset({ledger.IRQ})
        newcomers = [loss.pair for loss in counted if loss.newcomer]
        self._newcomers.add(newcomers, displaced, provoked)
        self._history.add(accounts)

    def _culprits(
        self, metric: str, rule: HypothesisRule, found: Sequence[PairLoss], start_ns: int
    ) -> tuple[_ByCulprit, _ByCulprit]:
        """Return by culprit the losses that have lasted, and all that count in this second."""
        lasting: dict[str, list[PairLoss]] = defaultdict(list)
        now: dict[str, list[PairLoss]] = defaultdict(list)
        for loss in found:
            key = metric, loss.pair
            assert rule.certain is not None, "its signature names the metric"
            times = self._counted.setdefault(key, deque(maxlen=rule.certain.need))
            times.append(start_ns)
            now[loss.pair.culprit].append(loss)
            if rule.certain.holds(times, start_ns):
                lasting[loss.pair.culprit].append(loss)
        return lasting, now

    def _forget(self, start_ns: int) -> None:
        """Forget pairs and culprits that have not counted for as long as a signature is held."""
        longest = max(rule.certain.of for rule in self._rules.values() if rule.certain)
        since_ns = start_ns - longest * NS_PER_SECOND
        self._counted = {
            key: times for key, times in self._counted.items() if since_ns <= times[-1] <= start_ns
        }
        self._lasted = {
            key: time for key, time in self._lasted.items() if since_ns <= time <= start_ns
        }


def rule_of(metric: str, rules: Sequence[HypothesisRule]) -> HypothesisRule | None:
    """Return the rule whose signature names one of ``ledger.JUDGED``; None if there is none."""
    return next((r for r in rules if r.is_measured and metric in r.required_metrics()), None)


def _matches(
    rule: HypothesisRule, metric: str, by_culprit: _ByCulprit, part: float
) -> Iterator[SignatureMatch]:
    """Yield a match of each culprit that takes enough of all its victims, who takes most first.

    Enough is this part of what the signature of the rule asks for.  Newcomers come before all
    others, whom they may have displaced.
    """
    assert rule.certain is not None, "its signature names the metric"
    least = rule.certain.conditions[0].above * part
    taken = {name: sum(loss.time for loss in found) for name, found in by_culprit.items()}
    taken = {name: time for name, time in taken.items() if time >= least}
    new = {name for name in taken if any(loss.newcomer for loss in by_culprit[name])}
    names = sorted(taken, key=lambda each: (each not in new, -taken[each], each))
    for name in names[:_MOST_CULPRITS]:
        ranked = sorted(by_culprit[name], key=lambda loss: (-loss.share, loss.pair.victim))
        harmed = tuple(Harmed(loss.pair.victim, loss.share) for loss in ranked[:_MOST_HARMED])
        column = Column(catalogue.find(metric), name, LEVEL)
        yield SignatureMatch(rule, (column,), name, taken[name], harmed, name in new)
