"""Groups of nodes with the same work: which one a node belongs to, over the minutes.

A fault changes what the jobs of a node use, and the shares of a node decide which of its jobs are
its work.  So a node keeps the workload that it had while its jobs are there, whatever they use.  It
takes another one when other jobs have been there for some minutes, or when it has looked like
another group for long.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

from reveal_analyzer.fleet.outliers import FULL_SECONDS, LEAST
from reveal_analyzer.fleet.summary import Summary
from reveal_analyzer.fleet.workload import LEAST_SHARE, USAGE, JobPart, with_count

Workload = tuple[str, ...]

OTHER_JOBS_MINUTES = 3  # a pod that restarts is away for less
OTHER_LEVELS_MINUTES = 10  # of a workload that other nodes have
# after which a job that is not the node's work is known to run beside it
_BESIDE_MINUTES = 10


@dataclass
class _Member:
    """A node in its group.

    ``since`` is the minute from which on each of its jobs has been there.  ``other_jobs`` and
    ``other_levels`` count the latest minutes in which it looked like a member of another group.
    """

    workload: Workload
    minute: int
    since: dict[str, int] = field(default_factory=dict)
    other_jobs: int = 0
    other_levels: int = 0


class WorkloadGroups:
    """The workload by which each node is compared with others.

    ``rows`` returns the nodes that do not have the workload of their last minute, as JSON values;
    ``load`` restores them.
    """

    def __init__(self) -> None:
        self._members: dict[str, _Member] = {}
        self._kept: dict[str, Workload] = {}  # of the last leader, until the node is there

    def assign(self, summaries: Iterable[Summary]) -> list[Summary]:
        """Return the summaries with the workload of their group; a minute counts once."""
        nodes = {summary.node: summary for summary in summaries}
        for summary in nodes.values():
            self._members.setdefault(summary.node, self._new(summary))
        view = _View(nodes, {node: self._members[node].workload for node in nodes})
        for node, summary in nodes.items():
            member = self._members[node]
            if member.minute != summary.minute and summary.seconds >= FULL_SECONDS:
                _advance(member, summary, view)
        return [self.assigned(summary) for summary in nodes.values()]

    def assigned(self, summary: Summary) -> Summary:
        """Return a summary with the workload of its node's group."""
        member = self._members.get(summary.node)
        if member is None or member.workload == summary.workload:
            return summary
        return replace(summary, workload=member.workload)

    def drop(self, nodes: Iterable[str]) -> None:
        """Forget nodes that have left."""
        for node in nodes:
            self._members.pop(node, None)

    def rows(self, summaries: Iterable[Summary]) -> list[list[Any]]:
        """Return the node and workload of those whose levels alone say another one."""
        members = [(summary, self._members.get(summary.node)) for summary in summaries]
        return [
            [summary.node, list(member.workload)]
            for summary, member in members
            if member and member.workload != summary.workload and not member.other_jobs
        ]

    def load(self, rows: Iterable[Any]) -> None:
        """Continue from the rows of another leader; skip those that are damaged."""
        for row in rows:
            match row:
                case [str(node), list(workload)] if all(isinstance(job, str) for job in workload):
                    self._kept[node] = tuple(workload)

    def _new(self, summary: Summary) -> _Member:
        kept = self._kept.pop(summary.node, None)
        if kept is None:
            since = dict.fromkeys(summary.jobs, summary.minute)
            return _Member(summary.workload, summary.minute, since)
        # the last leader knew that these jobs had been there
        since = dict.fromkeys(summary.jobs, summary.minute - _BESIDE_MINUTES)
        return _Member(kept, summary.minute, since)


class _View:
    """The summaries of a round by node, and the workloads that the nodes have before it."""

    def __init__(self, nodes: Mapping[str, Summary], workloads: Mapping[str, Workload]) -> None:
        self._nodes, self._workloads = nodes, workloads
        self._sizes = Counter(workloads.values())
        self._usages: dict[Workload, float] = {}

    def is_group(self, workload: Workload) -> bool:
        """Return whether enough nodes have a workload to be compared."""
        return self._sizes[workload] >= LEAST

    def usage(self, workload: Workload) -> float:
        """Return the median usage of the jobs of a group's nodes; 0 if it is no group."""
        if not self.is_group(workload):
            return 0.0
        if workload not in self._usages:
            members = [node for node, of_node in self._workloads.items() if of_node == workload]
            self._usages[workload] = median(_total(self._nodes[node].jobs) for node in members)
        return self._usages[workload]


def _advance(member: _Member, summary: Summary, view: _View) -> None:
    """Add a minute to a member; move it to the group of its summary if that lasts."""
    minute, own = summary.minute, summary.workload
    member.minute = minute
    member.since = {name: member.since.get(name, minute) for name in summary.jobs}
    differs = own != member.workload
    other_jobs = differs and (
        _has_lost_work(member, summary) or _has_new_work(member, summary, view)
    )
    other_levels = differs and not other_jobs and view.is_group(own)
    member.other_jobs = member.other_jobs + 1 if other_jobs else 0
    member.other_levels = member.other_levels + 1 if other_levels else 0
    if member.other_jobs >= OTHER_JOBS_MINUTES or member.other_levels >= OTHER_LEVELS_MINUTES:
        member.workload, member.other_jobs, member.other_levels = own, 0, 0


def _has_lost_work(member: _Member, summary: Summary) -> bool:
    """Return whether a job of the workload is away, or has another number of parts."""
    present = {with_count(name, job) for name, job in summary.jobs.items()}
    return not present.issuperset(member.workload)


def _has_new_work(member: _Member, summary: Summary, view: _View) -> bool:
    """Return whether another job came that is work by what the nodes of the group use.

    By what this node uses, a daemon would be work as soon as a fault stops the job beside it.
    """
    least = LEAST_SHARE * view.usage(member.workload)
    return any(
        _usage(job) >= least
        for name, job in _new_work(member, summary)
        if summary.minute - member.since[name] < _BESIDE_MINUTES
    )


def _new_work(member: _Member, summary: Summary) -> Sequence[tuple[str, JobPart]]:
    added: Collection[str] = set(summary.workload).difference(member.workload)
    return [(name, job) for name, job in summary.jobs.items() if with_count(name, job) in added]


def _total(jobs: Mapping[str, JobPart]) -> float:
    return sum(map(_usage, jobs.values()))


def _usage(job: JobPart) -> float:
    return job.levels.get(USAGE, 0.0) * job.count
