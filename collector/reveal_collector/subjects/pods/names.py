"""Join of cgroup paths with the pods of this node: which subject a cgroup is.

A pod is found by container id first and by uid second.  Of pods inside pods (kind in a pod) the
outermost one in this node's list counts.  The list of a cluster has no pods of another one, so each
names its own pods; and a pod that may write cgroups cannot give its work to another one by a name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import replace

from reveal_collector.subjects.cgroup_paths import SubjectPath, fallback_path, workload_paths
from reveal_collector.subjects.pods.podlist import Pod, PodIndex
from reveal_contract.subjects import Identity, SubjectKind

_SHORT_ID = 12
_SHORT_UID = 8


def subject_paths(
    path: str, index: PodIndex, containers: bool, divided: Set[str] = frozenset()
) -> tuple[SubjectPath, ...]:
    """Return the subject of a cgroup, followed by its container if ``containers`` is set.

    A container is a subject only in a pod that runs several.  ``divided`` are the cgroups in units
    whose children are subjects.  Return ``()`` for no subject.
    """
    owner = _outermost_listed(path, index, divided)
    if owner is None:
        return ()
    if not containers or not owner.container_root or owner.kind is not SubjectKind.POD:
        return (owner,)
    pod = index.find(owner.uid, owner.container)
    if pod is None or len(pod.mains) < 2:
        return (owner,)
    return owner, replace(owner, kind=SubjectKind.CONTAINER, root=owner.container_root)


def _outermost_listed(path: str, index: PodIndex, divided: Set[str]) -> SubjectPath | None:
    workloads = workload_paths(path)
    for owner in workloads:
        if owner.kind is SubjectKind.POD and index.find(owner.uid, owner.container) is not None:
            return owner
    # No pod is listed: the innermost workload counts, else the unit or the cgroup itself.
    return workloads[-1] if workloads else fallback_path(path, divided)


def identify(owner: SubjectPath, index: PodIndex, inode: int) -> Identity:
    """Return the identity of a subject; a pod that is not listed is named by its uid."""
    inside = owner.kind is SubjectKind.POD or owner.root == owner.container_root
    if inside and (pod := index.find(owner.uid, owner.container)) is not None:
        return _of_pod(owner, pod)
    if owner.kind is SubjectKind.POD:
        return Identity(f"pod:{owner.uid}", owner.kind, owner.uid, qos=owner.qos, cgroup=owner.root)
    name = owner.name or owner.root.rpartition("/")[2]
    if owner.kind is SubjectKind.CONTAINER:
        name = owner.uid[:_SHORT_ID]
    elif owner.kind is SubjectKind.JOB:
        name = owner.name or owner.uid
    return Identity(owner.root, owner.kind, owner.uid or str(inode), name=name, cgroup=owner.root)


def _of_pod(owner: SubjectPath, pod: Pod) -> Identity:
    is_pod = owner.kind is SubjectKind.POD
    container = pod.mains[0] if len(pod.mains) == 1 else ""
    if not is_pod:
        container = pod.containers.get(owner.container) or owner.container[:_SHORT_ID]
    return Identity(
        instance=pod.key if is_pod else f"{pod.key}/{container}",
        kind=owner.kind,
        uid=pod.uid if is_pod else owner.container,
        namespace=pod.namespace,
        name=pod.name,
        container=container,
        containers=tuple(f"{name}={id_}" for id_, name in sorted(pod.containers.items())),
        owner=pod.owner,
        job=pod.job,
        qos=pod.qos or owner.qos,
        cgroup=owner.root,
        host_network=pod.host_network,
        gpus=pod.gpus,
    )


def with_unique_instances(
    identities: Mapping[str, tuple[Identity, SubjectPath]], current: Mapping[str, str]
) -> dict[str, Identity]:
    """Return the identities by cgroup, each instance at most once.

    ``current`` is the instance by cgroup that a subject already has: it keeps that instance.
    """
    unique: dict[str, Identity] = {}
    taken: dict[str, Identity] = {}
    for path in sorted(identities, key=lambda path: (path not in current, path)):
        identity, owner = identities[path]
        for instance in _possible_instances(identity, owner, current.get(path, ""), taken):
            if instance not in taken:
                unique[path] = taken[instance] = replace(identity, instance=instance)
                break
    return unique


def _possible_instances(
    identity: Identity, owner: SubjectPath, current: str, taken: Mapping[str, Identity]
) -> Iterable[str]:
    """Yield possible instances, the preferred one first; the last one is always free."""
    if current.startswith(identity.instance):
        yield current
    yield identity.instance
    # containerd's older form with systemd: the containers of a pod have no cgroup in common
    if taken[identity.instance].uid == identity.uid and owner.container:
        yield f"{identity.instance}/{owner.container[:_SHORT_ID]}"
    # a pod of the same name that is still ending keeps the plain instance
    yield f"{identity.instance}~{identity.uid[:_SHORT_UID]}"
    yield f"{identity.instance}~{identity.uid}{owner.root}"


def with_parents(subjects: Mapping[str, Identity]) -> dict[str, Identity]:
    """Return the identities with ``parent`` set to the nearest subject around each cgroup."""
    result = {}
    for path in sorted(subjects):
        above = path.rpartition("/")[0]
        while above and above not in subjects:
            above = above.rpartition("/")[0]
        parent = subjects[above].instance if above else ""
        result[path] = replace(subjects[path], parent=parent)
    return result
