"""GPU-hours that jobs lose by the findings of one node.

A job loses a share of its time by a finding: that by which its steps take longer, with the interval
of this reading, else what the ledger measured.  Of the latter the least is 0, as a GPU may have had
work while the threads of its job lost time.  While a job loses a share of its time, the same share
of its GPUs is lost.

The rate that is known at an update holds until the next one, as a finding is updated when its harm
changes.  The first rate counts from the onset on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass, replace
from itertools import chain

from reveal_analyzer.ledger.gpu_time import PodName
from reveal_analyzer.state.records import restore_record, save_record
from reveal_analyzer.state.tree import StateError, StateTree, named_sections
from reveal_contract.costs import Cost, PodCost
from reveal_contract.finding import Finding, FindingChange, FindingUpdate, State
from reveal_contract.subjects import Identity
from reveal_contract.time_units import NS_PER_HOUR

_MOST_FINDINGS = 64  # those that were updated last
_MOST_PODS = 8  # of a finding, as an AnomalyReport has
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
class _PodAccount:
    """GPU-hours that a pod lost by a finding, and how many of its GPUs it loses now."""

    namespace: str
    name: str
    lost_gpus: float = 0.0
    hours: float = 0.0

    @property
    def pod(self) -> PodName:
        return self.namespace, self.name

    @property
    def cost(self) -> PodCost:
        return PodCost(f"{self.namespace}/{self.name}", self.hours)

    def after(self, hours: float, lost_gpus: float) -> _PodAccount:
        """Return the account after more hours, with the GPUs that are lost from then on."""
        return replace(self, lost_gpus=lost_gpus, hours=self.hours + hours * self.lost_gpus)


@dataclass(frozen=True)
class _Account:
    """GPU-hours that were lost by a finding until a time, and the rates from then on.

    ``pods`` are in the order of what they lost, most first.
    """

    until_ns: int
    rate: _Rate
    lost: float = 0.0
    low: float = 0.0
    high: float = 0.0
    pods: tuple[_PodAccount, ...] = ()

    @property
    def cost(self) -> Cost:
        return Cost(self.rate.gpus, self.rate.lost, self.lost, self.low, self.high)

    @property
    def pod_costs(self) -> tuple[PodCost, ...]:
        return tuple(each.cost for each in self.pods[:_MOST_PODS] if each.hours)

    @property
    def is_negative(self) -> bool:
        parts = chain.from_iterable((each.lost_gpus, each.hours) for each in self.pods)
        sums = (self.lost, self.low, self.high, *astuple(self.rate))
        return any(each < 0 for each in chain(sums, parts))

    def after(self, until_ns: int, rates: Mapping[PodName, _Rate]) -> _Account:
        """Return the account after more time, with the rates that count from then on."""
        hours = max(0, until_ns - self.until_ns) / NS_PER_HOUR
        return _Account(
            max(until_ns, self.until_ns),
            sum(rates.values(), _Rate()),
            self.lost + hours * self.rate.lost,
            self.low + hours * self.rate.low,
            self.high + hours * self.rate.high,
            self._pods_after(hours, {pod: rate.lost for pod, rate in rates.items()}),
        )

    def _pods_after(
        self, hours: float, lost_gpus: Mapping[PodName, float]
    ) -> tuple[_PodAccount, ...]:
        """Return the accounts of the pods that lose now, and of some that lost before."""
        known = {each.pod: each for each in self.pods}
        pods = {pod: known.get(pod, _PodAccount(*pod)) for pod in (*known, *lost_gpus)}
        after = [each.after(hours, lost_gpus.get(pod, 0.0)) for pod, each in pods.items()]
        after.sort(key=lambda each: -each.hours)
        return (*after[:_MOST_PODS], *(each for each in after[_MOST_PODS:] if each.lost_gpus))


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

    def lost_gpus(self) -> dict[PodName, float]:
        """Return how many GPUs each pod loses now, by the finding that costs it most."""
        lost: dict[PodName, float] = {}
        for each in chain.from_iterable(account.pods for account in self._accounts.values()):
            lost[each.pod] = max(each.lost_gpus, lost.get(each.pod, 0.0))
        return lost

    def save(self) -> StateTree:
        """Return what open findings have cost."""
        return {_FINDINGS: {id_: save_record(each) for id_, each in self._accounts.items()}}

    def restore(self, tree: StateTree) -> None:
        """Continue from a saved state; raises ``StateError``."""
        rows = named_sections(tree, _FINDINGS)
        accounts = {id_: restore_record(_Account, row) for id_, row in rows.items()}
        if any(each.is_negative for each in accounts.values()):
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
        costly = replace(finding, cost=account.cost, pod_costs=account.pod_costs)
        return replace(update, finding=costly)

    def _counted(self, finding: Finding, until_ns: int) -> _Account | None:
        """Return the account of a finding until a time; None while no GPU is known to be lost."""
        rates, known = self._rates(finding, until_ns), self._accounts.get(finding.id)
        if known is None and rates:
            known = _Account(finding.first_observed_ns, _Rate()).after(0, rates)
        return known.after(until_ns, rates) if known is not None else None

    def _keep(self, id_: str, account: _Account, *, is_over: bool) -> None:
        self._accounts.pop(id_, None)
        if is_over:
            return
        self._accounts[id_] = account
        while len(self._accounts) > _MOST_FINDINGS:
            del self._accounts[next(iter(self._accounts))]

    def _rates(self, finding: Finding, time_ns: int) -> dict[PodName, _Rate]:
        """Return what each pod loses that has GPUs, by its step time if that is read."""
        pods: dict[PodName, _Rate] = {}
        for subject, share in _shares(finding, recovered=self._has_recovered(finding.id)):
            identity = self._identity(subject, time_ns)
            if identity is not None and identity.is_alive(time_ns):
                pods.setdefault((identity.namespace, identity.name), share.times(identity.gpus))
        return {pod: rate for pod, rate in pods.items() if rate.gpus and rate.high}


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
