"""Workload of a node: its subjects, grouped by the job that they belong to on all nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import fmean

from reveal_analyzer.subjects.job_name import job_name
from reveal_analyzer.subjects.subject_kind import PROCESS_GROUP, kind_of
from reveal_contract.subjects import Identity, SubjectKind

USAGE = "cpu.subject.usage"
_LEAST_USAGE = 5e7  # ns of CPU per second: a twentieth of a CPU
LEAST_SHARE = 0.1  # of the CPU time of all subjects of the node
_MOST_MEMBERS = 10


@dataclass(frozen=True, slots=True)
class JobMember:
    """A subject of a job on a node; ``namespace`` is "" unless it is a pod."""

    kind: str
    namespace: str
    name: str
    uid: str = ""


@dataclass(frozen=True)
class JobPart:
    """The part of one job that runs on a node.

    ``members`` are the first ten of ``count``; ``levels`` are means per member in base units,
    counters per second.
    """

    members: tuple[JobMember, ...]
    count: int
    levels: Mapping[str, float] = field(default_factory=dict)


Means = Mapping[tuple[str, str], float]


def jobs(means: Means, identities: Iterable[Identity], node: str) -> dict[str, JobPart]:
    """Return the jobs that use a twentieth of a CPU or more, by their name on all nodes.

    ``means`` are those of subject channels over a minute, by (metric, instance).
    """
    known = {identity.instance: identity for identity in identities}
    names: dict[str, str] = {}
    members: dict[str, dict[str, JobMember]] = {}
    for instance in {instance for _, instance in means}:
        identity = known.get(instance)
        # the container of a pod is counted with its pod
        if identity is None or not (identity.kind is SubjectKind.CONTAINER and identity.namespace):
            names[instance] = name = job_name(instance, identity, node)
            members.setdefault(name, {})[instance] = _member(instance, identity)
    levels = _levels(means, names)
    return {
        name: JobPart(_first(parts), len(parts), levels[name])
        for name, parts in sorted(members.items())
        if levels[name].get(USAGE, 0.0) * len(parts) >= _LEAST_USAGE
    }


def _levels(means: Means, names: Mapping[str, str]) -> dict[str, dict[str, float]]:
    """Return by job and metric the mean of the members; ``names`` are jobs by instance."""
    values: dict[str, dict[str, list[float]]] = {name: {} for name in names.values()}
    for (metric, instance), value in means.items():
        if instance in names:
            values[names[instance]].setdefault(metric, []).append(value)
    return {
        name: {metric: fmean(some) for metric, some in of_job.items()}
        for name, of_job in values.items()
    }


def _first(members: Mapping[str, JobMember]) -> tuple[JobMember, ...]:
    return tuple(members[instance] for instance in sorted(members)[:_MOST_MEMBERS])


def workload(means: Means, found: Mapping[str, JobPart]) -> tuple[str, ...]:
    """Return the jobs that use a tenth or more of the node's CPU time, with their counts.

    Nodes with equal results have the same workload; an idle node has none.
    """
    whole = sum(value for (metric, _), value in means.items() if metric == USAGE)
    least = max(_LEAST_USAGE, LEAST_SHARE * whole)
    return tuple(
        with_count(name, job)
        for name, job in sorted(found.items())
        if job.levels[USAGE] * job.count >= least
    )


def with_count(name: str, job: JobPart) -> str:
    """Return a job as a part of a node's workload: ``ml/Job/train x 2``."""
    # how many process groups share a name is chance
    is_group = any(member.kind == PROCESS_GROUP for member in job.members)
    return name if is_group else f"{name} x {job.count}"


def is_work(name: str, workload: Iterable[str]) -> bool:
    """Return whether a job is a part of a workload, with any count."""
    return any(
        part == name or (part.startswith(f"{name} x ") and part[len(name) + 3 :].isdigit())
        for part in workload
    )


def _member(instance: str, identity: Identity | None) -> JobMember:
    kind = kind_of(instance, identity)
    if identity is None:
        return JobMember(kind, "", instance)
    name = identity.name if identity.namespace else instance
    return JobMember(kind, identity.namespace, name, identity.uid)
