"""What a cgroup path says: which pod, container, job or unit it belongs to.

Pure; shapes of the kubelet's cgroup managers (cgroupfs and systemd), containerd, CRI-O,
cri-dockerd, podman, LXC and Slurm, nested in each other as kind and docker-in-docker do.
Names of a path's parts and their meaning: systemd.slice(5), systemd.scope(5),
cgroup_namespaces(7) for leading ``..``, Slurm's cgroup.conf.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from reveal_contract.subjects import SubjectKind

PLAIN_DEPTH = 4  # parts of the path of a cgroup that nothing is known of

# Only stand for a mount, hold PID 1 or an overseer of a container: never a subject.
_NO_SUBJECT = ("*.mount", "*.swap", "init.scope", "*-conmon-*.scope", "*-conmon-*")
_UNITS = (".service", ".scope")

# A static pod's uid is a hash without dashes; systemd wants "_" where the API has "-".
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
_SLURM = re.compile(r"slurm(?:_.+)?\Z|(?:.+_)?slurmstepd\.scope\Z")
_JOB = re.compile(r"job_(?P<id>[0-9]+)\Z")
_QOS = {"besteffort": "BestEffort", "burstable": "Burstable"}


@dataclass(frozen=True, slots=True)
class Place:
    """The subject a cgroup belongs to: ``root`` is the subject's own cgroup, the path or above it.

    ``uid`` is a pod's as the API has it (of a static pod the hash of its configuration), a
    job's number or a container's id; ``container`` the id of the container inside a pod and
    ``container_root`` its cgroup.
    """

    kind: SubjectKind
    root: str
    uid: str = ""
    qos: str = ""
    container: str = ""
    container_root: str = ""


def cleaned(path: str) -> list[str]:
    """The parts of a path as /proc/PID/cgroup or a walk gives it.

    A process outside of the reader's cgroup namespace shows as ``/../../kubepods``; one whose
    cgroup is removed ends in `` (deleted)``.
    """
    parts = path.removesuffix(" (deleted)").split("/")
    return [part for part in parts if part not in ("", ".", "..")]


def places(path: str) -> tuple[Place, ...]:
    """Pods, jobs and containers on the way down a path, the outermost first.

    A container inside a pod or job is part of it; a pod inside anything is one of its own.
    """
    found: list[Place] = []
    parts = cleaned(path)
    for depth, part in enumerate(parts):
        root = "/" + "/".join(parts[: depth + 1])
        made = _pod(part, parts[:depth], root) or _job(part, parts[:depth], root)
        if made is not None:
            found.append(made)
        elif (container := _container_id(part, parts[:depth])) is not None:
            _enter(found, container, root)
    return tuple(found)


def place(path: str) -> Place | None:
    """The subject of a path: the deepest pod, job or container, else unit, else the cgroup."""
    strong = places(path)
    return strong[-1] if strong else weak_place(path)


def weak_place(path: str) -> Place | None:
    """The deepest unit of a path, else the path itself, cut; ``None``: nobody's."""
    parts = cleaned(path)
    if not parts or not is_subject(parts[-1]):
        return None
    for depth in range(len(parts), 0, -1):
        if parts[depth - 1].endswith(_UNITS) and is_subject(parts[depth - 1]):
            return Place(SubjectKind.UNIT, "/" + "/".join(parts[:depth]))
    return Place(SubjectKind.CGROUP, "/" + "/".join(parts[:PLAIN_DEPTH]))


def is_subject(part: str) -> bool:
    """Whether a part of a path names something that can do work."""
    return not any(fnmatchcase(part, odd) for odd in _NO_SUBJECT)


def of_process(text: str) -> list[str]:
    """The distinct paths of ``/proc/PID/cgroup`` (cgroups(7)), those of CPU time first.

    Lines are ``id:controllers:path``; a path may hold colons itself.
    """
    first: list[str] = []
    rest: list[str] = []
    for line in text.splitlines():
        _, _, tail = line.partition(":")
        controllers, found, path = tail.partition(":")
        if found:
            wanted = not controllers or {"cpu", "cpuacct"} & set(controllers.split(","))
            (first if wanted else rest).append(path)
    # a hybrid host's version 2 line has no controllers, so a version 1 line knows better
    first.sort(key=lambda path: not places(path))
    return list(dict.fromkeys(first + rest))


def _pod(part: str, above: list[str], root: str) -> Place | None:
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
    return Place(SubjectKind.POD, root, uid, qos, container, root if container else "")


def _job(part: str, above: list[str], root: str) -> Place | None:
    match = _JOB.match(part)
    if match is None or not any(_SLURM.match(one) for one in above):
        return None
    return Place(SubjectKind.JOB, root, match["id"])


def _container_id(part: str, above: list[str]) -> str | None:
    match = _CONTAINER.match(part) or _LXC.match(part)
    if match is not None:
        return match["id"]
    return part if above and above[-1] in _LXC_PARENTS else None


def _enter(found: list[Place], container: str, root: str) -> None:
    """Into a container: of the pod or job around it, or a subject of its own."""
    last = found[-1] if found else None
    if last is None or last.kind is SubjectKind.CONTAINER:
        found.append(Place(SubjectKind.CONTAINER, root, container, container=container))
    elif not last.container:
        found[-1] = replace(last, container=container, container_root=root)
