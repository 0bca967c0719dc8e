"""Sums of what findings cost, by job, namespace, node or cause: pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from reveal_cli.jobs import affected_job, job_of
from reveal_cli.kubectl.report_text import cause_text
from reveal_cli.kubectl.reports import ClusterReport
from reveal_contract.costs import amount_of
from reveal_contract.finding import FindingScope, State

_ROUNDED = 0.01  # hours: so much the rounded parts of a cost differ from it


@dataclass(frozen=True)
class JobCost:
    """GPU-hours that a job lost by one finding, and the price of one if it is known."""

    job: str
    hours: float
    item: ClusterReport
    price: str = ""

    @property
    def namespace(self) -> str:
        """The namespace of the job."""
        return self.job.partition("/")[0]

    @property
    def node(self) -> str:
        """The node of the finding."""
        return self.item.report.node

    @property
    def cause(self) -> str:
        """The known cause of the finding, else its foremost metric."""
        return cause_text(self.item)


KEYS: Mapping[str, Callable[[JobCost], str]] = {
    "job": lambda each: each.job,
    "namespace": lambda each: each.namespace,
    "node": lambda each: each.node,
    "cause": lambda each: each.cause,
}


@dataclass(frozen=True)
class CostSum:
    """What the findings of one job, namespace, node or cause cost together."""

    name: str
    hours: float
    amounts: Mapping[str, float]  # by currency
    findings: int
    open: int
    causes: tuple[str, ...]  # the costliest first


def cost_sums(items: Iterable[ClusterReport], key: str, price: str = "") -> list[CostSum]:
    """Return the sums by a key of ``KEYS``, the highest first.

    ``price`` is that of a GPU-hour, instead of those that the reports have.
    """
    groups: dict[str, list[JobCost]] = defaultdict(list)
    for found in counted_costs(items):
        each = replace(found, price=price or found.price)
        groups[KEYS[key](each)].append(each)
    sums = [_sum(name, costs) for name, costs in groups.items()]
    return sorted(sums, key=lambda each: (-each.hours, each.name))


def counted_costs(items: Iterable[ClusterReport]) -> list[JobCost]:
    """Return the costs that may be added.

    A finding of a delayed job counts the GPUs of all its nodes, and findings of these nodes count
    them again.  So of each job only the findings of the scope count that cost more together.
    """
    by_job: dict[str, dict[FindingScope, list[JobCost]]] = defaultdict(lambda: defaultdict(list))
    for item in items:
        for each in _costs(item):
            by_job[each.job][item.finding.scope].append(each)
    return [each for scopes in by_job.values() for each in max(scopes.values(), key=_hours)]


def _costs(item: ClusterReport) -> Iterator[JobCost]:
    """Yield what each job lost by a finding."""
    finding, cost = item.finding, item.finding.cost
    if cost is None:
        return
    jobs: dict[str, float] = defaultdict(float)
    for pod in finding.pod_costs:
        jobs[job_of(pod.name)] += pod.lost_gpu_hours
    # of a delayed job, or of an earlier version; or a report has room for some pods only
    rest = cost.lost_gpu_hours - sum(jobs.values())
    if rest > _ROUNDED or not jobs:
        jobs[affected_job(finding) or finding.node_name] += rest
    for job, hours in jobs.items():
        yield JobCost(job, hours, item, cost.price)


def total_amounts(sums: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Return sums of money added up, by currency."""
    total: dict[str, float] = defaultdict(float)
    for currency, amount in chain.from_iterable(each.items() for each in sums):
        total[currency] += amount
    return dict(total)


def _amounts(each: JobCost) -> dict[str, float]:
    """Return what a cost is in money, by its currency; nothing without a price."""
    if not each.price:
        return {}
    amount, currency = amount_of(each.price, each.hours)
    return {currency: amount}


def _sum(name: str, costs: Sequence[JobCost]) -> CostSum:
    causes: dict[str, float] = defaultdict(float)
    for each in costs:
        causes[each.cause] += each.hours
    findings = {each.item.name: each.item.finding.state for each in costs}
    return CostSum(
        name,
        _hours(costs),
        total_amounts(map(_amounts, costs)),
        len(findings),
        list(findings.values()).count(State.OPEN),
        tuple(sorted(causes, key=lambda cause: -causes[cause])),
    )


def _hours(costs: Iterable[JobCost]) -> float:
    return sum(each.hours for each in costs)
