"""Meaning of a cgroup path: the pod, container, job or unit that it belongs to.

These are pure functions.  They know the paths of the kubelet's cgroup managers (cgroupfs and
systemd), containerd, CRI-O, cri-dockerd, podman, LXC, Slurm, PBS, TORQUE, HTCondor and LSF, also
nested in each other as kind and docker-in-docker do.  Path parts follow systemd.slice(5),
systemd.scope(5) and the documents of the batch systems; for a leading ``..`` see
cgroup_namespaces(7).
"""

from __future__ import annotations

import re
from collections.abc import Set
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from reveal_contract.subjects import SubjectKind

MAX_PLAIN_DEPTH = 4  # path parts kept of a cgroup of unknown kind

# These stand for a mount, or hold PID 1 or a container's monitor process: never a subject.
_NOT_SUBJECTS = ("*.mount", "*.swap", "init.scope", "*-conmon-*.scope", "*-conmon-*")
_UNITS = (".service", ".scope")
# Cgroups of a unit's own processes beside its workload: systemd names them so (DelegateSubgroup,
# systemd-nspawn), and podman the cgroup of conmon (--cgroups=split).
_OWN_PARTS = ("supervisor", "runtime")

# The uid of a static pod is a hash without dashes; systemd replaces "-" of the API by "_".
_UID = r"(?P<uid>[0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|[0-9a-f]{32})"
_POD_SLICE = re.compile(
    rf"(?:.+-)?kubepods(?:-(?P<qos>besteffort|burstable))?-pod{_UID}\.slice"
    r"(?::[a-z-]+:(?P<id>[0-9a-f]{64}))?\Z"
)
_POD_FOLDER = re.compile(rf"pod{_UID}\Z")
_CONTAINER = re.compile(
    r"(?:(?:cri-containerd|containerd|nerdctl|crio|cri-o|docker|libpod|podman)-)?"
    r"(?P<id>[0-9a-f]{64})(?:\.scope)?\Z"
)
_LXC = re.compile(r"lxc\.payload\.(?P<id>.+)\Z")
_LXC_PARENTS = ("lxc", "lxc.payload")
# Cgroups of batch systems, below which each job has a cgroup of its own, and the names of those.
# ``id`` is the job; in HTCondor ``slot``, which runs one job after another.
_JOB_MANAGER = re.compile(
    r"(?P<slurm>slurm(?:_.+)?|(?:.+_)?slurmstepd\.scope)"
    r"|(?P<pbs>pbs\w*(?:\.service|\.slice)?|torque)|(?P<htcondor>htcondor)|(?P<lsf>lsf)"
)
_JOBS = {
    # slurm/uid_0/job_1 (version 1), slurmstepd.scope/job_1; since 26.05 slurmstepd.scope/SLUID,
    # which is "s" and 13 digits of Crockford's base 32
    "slurm": re.compile(r"(?:job_)?(?P<id>(?<=job_)[0-9]+|s[0-9A-HJKMNP-TV-Z]{13})"),
    # torque/1.server, pbs_jobs.service/jobid/1.server (version 1), pbs_jobs.service/jobs/1.server;
    # the slice is an earlier form of PBS; an array job is 1[2].server
    "pbs": re.compile(r"(?:pbs\w*-)?(?P<id>[0-9]+(?:\[[0-9]*\])?\..+?)(?:\.slice)?"),
    # htcondor/condor_var_lib_condor_execute_slot1_2@host; since 25 _condor_slot1_2@host.slice
    "htcondor": re.compile(
        r".*_(?P<slot>slot[0-9]+(?:_[0-9]+)?(?:@.+?)?)(?:\.slice|\.scope|\.service)?"
    ),
    # lsf/CLUSTER/job.ID.PID.TIME
    "lsf": re.compile(r"job\.(?P<id>[0-9]+(?:\[[0-9]+\])?)(?:\..+)?"),
}
_QOS = {"besteffort": "BestEffort", "burstable": "Burstable"}


@dataclass(frozen=True, slots=True)
class SubjectPath:
    """The subject that a cgroup path belongs to; ``root`` is the subject's own cgroup.

    ``root`` is the path itself or an ancestor of it.  ``uid`` is the uid of a pod in the API (of a
    static pod the hash of its configuration), the id of a job or the id of a container.
    ``container`` is the id of the container inside a pod, and ``container_root`` its cgroup.
    ``name`` is that of a job without an id.
    """

    kind: SubjectKind
    root: str
    uid: str = ""
    qos: str = ""
    container: str = ""
    container_root: str = ""
    name: str = ""


def path_parts(path: str) -> list[str]:
    """Return the parts of a path as /proc/PID/cgroup or a walk shows it.

    The path of a process outside the reader's cgroup namespace starts with ``/..``.
    """
    return [part for part in path.split("/") if part not in ("", ".", "..")]


def workload_paths(path: str) -> tuple[SubjectPath, ...]:
    """Return the pods, jobs and containers along a path, outermost first.

    A container inside a pod or job is part of it.  A pod inside anything is a subject of its own.
    """
    found: list[SubjectPath] = []
    parts = path_parts(path)
    manager = ""  # of jobs, on the way
    for depth, part in enumerate(parts):
        root = "/" + "/".join(parts[: depth + 1])
        workload = _pod(part, parts[:depth], root) or _job(part, manager, root)
        if (named := _JOB_MANAGER.fullmatch(part)) is not None:
            manager = named.lastgroup or ""
        if workload is not None:
            found.append(workload)
            manager = ""  # a job is in no other job of its manager
        elif (container := _container_id(part, parts[:depth])) is not None:
            _add_container(found, container, root)
    return tuple(found)


def subject_path(path: str) -> SubjectPath | None:
    """Return the subject of a path: the deepest pod, job or container, else a fallback."""
    workloads = workload_paths(path)
    return workloads[-1] if workloads else fallback_path(path)


def fallback_path(path: str, divided: Set[str] = frozenset()) -> SubjectPath | None:
    """Return the deepest unit of a path, else the path cut to its first parts, else ``None``.

    ``divided`` are the cgroups, in units or units themselves, whose children are subjects.
    """
    parts = path_parts(path)
    if not parts or not can_be_subject(parts[-1]):
        return None
    for depth in range(len(parts), 0, -1):
        if parts[depth - 1].endswith(_UNITS) and can_be_subject(parts[depth - 1]):
            return _in_unit(parts, depth, divided)
    return SubjectPath(SubjectKind.CGROUP, "/" + "/".join(parts[:MAX_PLAIN_DEPTH]))


def _in_unit(parts: list[str], depth: int, divided: Set[str]) -> SubjectPath:
    """Return the unit of the first ``depth`` parts, or the child of a divided cgroup in it."""
    unit = parent = "/" + "/".join(parts[:depth])
    path = "/" + "/".join(parts)
    for part in parts[depth:]:
        if parent in divided and (child := child_towards(parent, path)) != parent:
            return SubjectPath(SubjectKind.CGROUP, child)
        parent = f"{parent}/{part}"
    return SubjectPath(SubjectKind.UNIT, unit)


def unit_of(path: str) -> str | None:
    """Return the unit that a path belongs to, for a path of no workload."""
    subject = None if workload_paths(path) else fallback_path(path)
    return subject.root if subject is not None and subject.kind is SubjectKind.UNIT else None


def child_towards(parent: str, path: str) -> str:
    """Return the child of a cgroup on the way to a path; itself for its own processes."""
    below = path.removeprefix(parent).lstrip("/").partition("/")[0]
    return parent if below in ("", *_OWN_PARTS) else f"{parent}/{below}"


def can_be_subject(part: str) -> bool:
    """Return whether a part of a path names something that runs processes of its own."""
    return not any(fnmatchcase(part, pattern) for pattern in _NOT_SUBJECTS)


def process_cgroups(text: str) -> list[str]:
    """Return the distinct paths of ``/proc/PID/cgroup`` (cgroups(7)), CPU controllers first.

    A line is ``id:controllers:path``; the path itself may contain colons.  The path of a process
    whose cgroup is removed ends with `` (deleted)``.
    """
    first: list[str] = []
    rest: list[str] = []
    for line in text.split("\n"):  # not splitlines: a path may have other line separators
        _, _, tail = line.partition(":")
        controllers, found, path = tail.partition(":")
        if found:
            # Version 2 names no controllers.
            counts_cpu = not controllers or {"cpu", "cpuacct"} & set(controllers.split(","))
            (first if counts_cpu else rest).append(path.removesuffix(" (deleted)"))
    # On a hybrid host the version 2 hierarchy may not contain the pod: prefer paths that do.
    first.sort(key=lambda path: not workload_paths(path))
    return list(dict.fromkeys(first + rest))


def _pod(part: str, above: list[str], root: str) -> SubjectPath | None:
    match = _POD_SLICE.match(part)
    if match is not None:
        qos = _QOS.get(match["qos"] or "", "Guaranteed")
        container = match["id"] or ""
    else:
        match = _POD_FOLDER.match(part)
        if match is None:
            return None
        qos = _QOS.get(above[-1] if above else "", "Guaranteed")
        container = ""
    uid = match["uid"].replace("_", "-")
    return SubjectPath(SubjectKind.POD, root, uid, qos, container, root if container else "")


def _job(part: str, manager: str, root: str) -> SubjectPath | None:
    match = _JOBS[manager].fullmatch(part) if manager else None
    if match is None:
        return None
    names = match.groupdict()
    return SubjectPath(SubjectKind.JOB, root, names.get("id", ""), name=names.get("slot", ""))


def _container_id(part: str, above: list[str]) -> str | None:
    match = _CONTAINER.match(part) or _LXC.match(part)
    if match is not None:
        return match["id"]
    return part if above and above[-1] in _LXC_PARENTS else None


def _add_container(found: list[SubjectPath], container: str, root: str) -> None:
    """Add a container to the pod or job around it, or as a subject of its own."""
    last = found[-1] if found else None
    # A container inside a plain container is a subject: the outer one is a node (kind).
    if last is None or last.kind is SubjectKind.CONTAINER:
        found.append(SubjectPath(SubjectKind.CONTAINER, root, container, container=container))
    # Only the outermost container of a pod has an id that the API knows.
    elif not last.container:
        found[-1] = replace(last, container=container, container_root=root)
