"""GPU-hours that jobs lose by the findings of one node.

A job loses a share of its time by a finding: that by which its steps take longer, with the interval
of this reading, else what the ledger measured.  Of the latter the least is 0, as a GPU may have had
work while the threads of its job lost time.  While a job loses a share of its time, the same share
of its GPUs is lost.

The rate that is known at an update holds until the next one, as a finding is updated when its harm
changes.  The first rate counts from the onset on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import astuple, dataclass, replace

from reveal_analyzer.state.records import restore_record, save_record
from reveal_analyzer.state.tree import StateError, StateTree, named_sections
from reveal_contract.finding import Cost, Finding, FindingChange, FindingUpdate, State
from reveal_contract.subjects import Identity
from reveal_contract.time_units import NS_PER_HOUR

_MOST_FINDINGS = 64  # those that were updated last
_FINDINGS = "findings"  # in a saved state


@dataclass(frozen=True)
class _Rate:
    """How many GPUs are lost, of those of the jobs that lose, between ``low`` and ``high``."""

    gpus: int = 0
    lost: float = 0.0
    low: float = 0.0
    high: float = 0.0

    def times(self, gpus: int) -> _Rate:
        """Return the rate of so many GPUs, from that of a single GPU."""
        return _Rate(gpus, gpus * self.lost, gpus * self.low, gpus * self.high)

    def __add__(self, other: _Rate) -> _Rate:
        return _Rate(
            self.gpus + other.gpus,
            self.lost + other.lost,
            self.low + other.low,
            self.high + other.high,
        )


@dataclass(frozen=True)
class _Account:
    """GPU-hours that were lost by a finding until a time, and the rate from then on."""

    until_ns: int
    rate: _Rate
    lost: float = 0.0
    low: float = 0.0
    high: float = 0.0

    @property
    def cost(self) -> Cost:
        return Cost(self.rate.gpus, self.rate.lost, self.lost, self.low, self.high)

    def after(self, until_ns: int, rate: _Rate) -> _Account:
        """Return the account after more time, with the rate that counts from then on."""
        hours = max(0, until_ns - self.until_ns) / NS_PER_HOUR
        return _Account(
            max(until_ns, self.until_ns),
            rate,
            self.lost + hours * self.rate.lost,
            self.low + hours * self.rate.low,
            self.high + hours * self.rate.high,
        )


class CostMeter:
    """What the open findings of one node have cost.

    ``identity`` returns what was announced of a subject at a time.  ``has_recovered`` returns
    whether the job of a finding's impact is at its baseline again, by the id of the finding.
    """

    def __init__(
        self,
        identity: Callable[[str, int], Identity | None],
        has_recovered: Callable[[str], bool],
    ) -> None:
        self._identity, self._has_recovered = identity, has_recovered
        self._accounts: dict[str, _Account] = {}  # by the id of an open finding

    def added(self, updates: Iterable[FindingUpdate], now_ns: int) -> list[FindingUpdate]:
        """Return the updates with what their findings cost, by the losses and impacts in them."""
        return [self._with_cost(update, now_ns) for update in updates]

    def save(self) -> StateTree:
        """Return what open findings have cost."""
        return {_FINDINGS: {id_: save_record(each) for id_, each in self._accounts.items()}}

    def restore(self, tree: StateTree) -> None:
        """Continue from a saved state; raises ``StateError``."""
        rows = named_sections(tree, _FINDINGS)
        accounts = {id_: restore_record(_Account, row) for id_, row in rows.items()}
        for each in accounts.values():
            if min(each.lost, each.low, each.high, *astuple(each.rate)) < 0:
                raise StateError("a finding costs less than nothing")
        self._accounts = accounts

    def _with_cost(self, update: FindingUpdate, now_ns: int) -> FindingUpdate:
        if update.change is FindingChange.SUSPECTED:
            return update
        finding = update.finding
        # an update with a new impact still has the last observation of the update before
        until_ns = now_ns if finding.state is State.OPEN else finding.last_observed_ns
        account = self._counted(finding, until_ns)
        if account is None:
            return update
        self._keep(finding.id, account, is_over=update.change is FindingChange.RESOLVED)
        return replace(update, finding=replace(finding, cost=account.cost))

    def _counted(self, finding: Finding, until_ns: int) -> _Account | None:
        """Return the account of a finding until a time; None while no GPU is known to be lost."""
        rate, known = self._rate(finding, until_ns), self._accounts.get(finding.id)
        if known is None:
            known = _Account(finding.first_observed_ns, rate) if rate.gpus else None
        return known.after(until_ns, rate) if known is not None else None

    def _keep(self, id_: str, account: _Account, *, is_over: bool) -> None:
        self._accounts.pop(id_, None)
        if is_over:
            return
        self._accounts[id_] = account
        while len(self._accounts) > _MOST_FINDINGS:
            del self._accounts[next(iter(self._accounts))]

    def _rate(self, finding: Finding, time_ns: int) -> _Rate:
        """Return what the jobs lose; each pod counts once, by its step time if that is read."""
        pods: dict[tuple[str, str], _Rate] = {}
        for subject, share in _shares(finding, recovered=self._has_recovered(finding.id)):
            identity = self._identity(subject, time_ns)
            if identity is not None and _is_alive(identity, time_ns):
                pods.setdefault((identity.namespace, identity.name), share.times(identity.gpus))
        return sum((rate for rate in pods.values() if rate.gpus and rate.high), _Rate())


def lost_share(slowdown_percent: float) -> float:
    """Return the share of its time that a job loses whose steps take longer; 0 if shorter."""
    slowdown = max(0.0, slowdown_percent)
    return slowdown / (100 + slowdown)


def _shares(finding: Finding, *, recovered: bool) -> Iterator[tuple[str, _Rate]]:
    """Yield what each job lost of a single GPU, first the job whose steps were measured."""
    impact = finding.impact
    if impact is not None and recovered:
        yield impact.subject, _Rate(1)  # its steps say more than the ledger
    elif impact is not None:
        percents = (impact.slowdown_percent, impact.low_percent, impact.high_percent)
        yield impact.subject, _Rate(1, *map(lost_share, percents))
    for loss in finding.lost_time:
        share = loss.lost_percent / 100
        yield loss.subject, _Rate(1, share, 0.0, share)


def _is_alive(identity: Identity, time_ns: int) -> bool:
    return not identity.until_ns or identity.until_ns >= time_ns
