"""Whose work a node does: its subjects by the job they belong to, over all nodes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import fmean

from reveal_contract.subjects import Identity, SubjectKind

USAGE = "cpu.subject.usage"
_SOME = 5e7  # ns of CPU a second: a twentieth of a CPU
_SHARE = 0.1  # of what all subjects of the node use
_PID = re.compile(r"\[\d+\]\Z")
_MOST_MEMBERS = 10
_GROUP = "ProcessGroup"


@dataclass(frozen=True, slots=True)
class Member:
    """A subject of a job on a node; ``namespace`` is "" for what is no pod."""

    kind: str
    namespace: str
    name: str
    uid: str = ""


@dataclass(frozen=True)
class Job:
    """The part of one job that runs on a node.

    ``members`` are the first ten of ``count``; ``levels`` means of a member in base units,
    counters per second.
    """

    members: tuple[Member, ...]
    count: int
    levels: Mapping[str, float] = field(default_factory=dict)


Means = Mapping[tuple[str, str], float]


def jobs(means: Means, identities: Iterable[Identity], node: str) -> dict[str, Job]:
    """The jobs that use a twentieth of a CPU or more, by a name that is theirs on all nodes.

    ``means`` are those of subject channels over a minute, by (metric, instance).
    """
    known = {one.instance: one for one in identities}
    names: dict[str, str] = {}
    members: dict[str, dict[str, Member]] = {}
    for instance in {instance for _, instance in means}:
        who = known.get(instance)
        if who is None or not (who.kind is SubjectKind.CONTAINER and who.namespace):
            names[instance] = name = job_name(instance, who, node)
            members.setdefault(name, {})[instance] = _member(instance, who)
    levels = _levels(means, names)
    return {
        name: Job(_first(parts), len(parts), levels[name])
        for name, parts in sorted(members.items())
        if levels[name].get(USAGE, 0.0) * len(parts) >= _SOME
    }


def _levels(means: Means, names: Mapping[str, str]) -> dict[str, dict[str, float]]:
    """By job and metric the mean of the members that have it; ``names`` are their jobs."""
    values: dict[str, dict[str, list[float]]] = {name: {} for name in names.values()}
    for (metric, instance), value in means.items():
        if instance in names:
            values[names[instance]].setdefault(metric, []).append(value)
    return {
        name: {metric: fmean(some) for metric, some in of_job.items()}
        for name, of_job in values.items()
    }


def _first(members: Mapping[str, Member]) -> tuple[Member, ...]:
    return tuple(members[instance] for instance in sorted(members)[:_MOST_MEMBERS])


def workload(means: Means, found: Mapping[str, Job]) -> tuple[str, ...]:
    """What the node works for: jobs with a tenth of all that is used, counted.

    Nodes are alike in their work where these are equal; an idle node has none.
    """
    whole = sum(value for (metric, _), value in means.items() if metric == USAGE)
    least = max(_SOME, _SHARE * whole)
    return tuple(
        counted(name, job)
        for name, job in sorted(found.items())
        if job.levels[USAGE] * job.count >= least
    )


def counted(name: str, job: Job) -> str:
    """A job as a part of the work of a node: ``ml/Job/train x 2``.

    How many process groups go by one name is chance.
    """
    by_chance = any(member.kind == _GROUP for member in job.members)
    return name if by_chance else f"{name} x {job.count}"


def job_name(instance: str, who: Identity | None, node: str) -> str:
    """A pod's controller; else the subject without what differs from node to node."""
    if who is None or not who.namespace:
        return _PID.sub("", instance)
    if who.owner.startswith("Node/"):  # a static pod is called by its node
        return f"{who.namespace}/{who.name.removesuffix(f'-{node}')}"
    return f"{who.namespace}/{who.owner or who.name}"


def _member(instance: str, who: Identity | None) -> Member:
    if who is None:
        kind = _GROUP if _PID.search(instance) else "Cgroup"
        return Member(kind, "", instance)
    name = who.name if who.namespace else instance
    return Member(who.kind.value, who.namespace, name, who.uid)
