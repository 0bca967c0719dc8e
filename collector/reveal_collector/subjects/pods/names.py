"""From a cgroup's place and the pods of this node to the subject it is: the join.

A pod is found by container id first and by uid second; of pods inside pods (kind in a pod) the
deepest that this node's list knows, so that a list of the outer cluster still names its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from reveal_collector.subjects.pods.paths import Place, places, weak_place
from reveal_collector.subjects.pods.podlist import Pod, PodIndex
from reveal_contract.subjects import Identity, SubjectKind

_SHORT_ID = 12
_SHORT_UID = 8


def owners(path: str, index: PodIndex, containers: bool) -> tuple[Place, ...]:
    """Whose cgroup this is: one subject, and the container in it where ``containers`` asks.

    Containers are told apart only in pods that run several.
    """
    place = _owner(path, index)
    if place is None:
        return ()
    if not containers or not place.container_root or place.kind is not SubjectKind.POD:
        return (place,)
    pod = index.find(place.uid, place.container)
    if pod is None or len(pod.mains) < 2:
        return (place,)
    return place, replace(place, kind=SubjectKind.CONTAINER, root=place.container_root)


def _owner(path: str, index: PodIndex) -> Place | None:
    strong = places(path)
    for place in reversed(strong):
        if place.kind is SubjectKind.POD and index.find(place.uid, place.container) is not None:
            return place
    return strong[-1] if strong else weak_place(path)


def identity(place: Place, index: PodIndex, inode: int) -> Identity:
    """Who a place is; a pod nobody lists is known by its uid."""
    inside = place.kind is SubjectKind.POD or place.root == place.container_root
    if inside and (pod := index.find(place.uid, place.container)) is not None:
        return _of_pod(place, pod)
    if place.kind is SubjectKind.POD:
        return Identity(f"pod:{place.uid}", place.kind, place.uid, qos=place.qos, cgroup=place.root)
    name = place.root.rpartition("/")[2]
    if place.kind is SubjectKind.JOB:
        name = place.uid
    elif place.kind is SubjectKind.CONTAINER:
        name = place.uid[:_SHORT_ID]
    return Identity(place.root, place.kind, place.uid or str(inode), name=name, cgroup=place.root)


def _of_pod(place: Place, pod: Pod) -> Identity:
    whole = place.kind is SubjectKind.POD
    container = pod.mains[0] if len(pod.mains) == 1 else ""
    if not whole:
        container = pod.containers.get(place.container) or place.container[:_SHORT_ID]
    return Identity(
        instance=pod.key if whole else f"{pod.key}/{container}",
        kind=place.kind,
        uid=pod.uid if whole else place.container,
        namespace=pod.namespace,
        name=pod.name,
        container=container,
        containers=tuple(f"{name}={one}" for one, name in sorted(pod.containers.items())),
        owner=pod.owner,
        qos=pod.qos or place.qos,
        cgroup=place.root,
        host_network=pod.host_network,
    )


def told_apart(
    named: Mapping[str, tuple[Identity, Place]], held: Mapping[str, str]
) -> dict[str, Identity]:
    """Identities by cgroup with no instance twice.

    ``held`` is the instance a cgroup goes by already: it keeps it.  Of two pods of one name (one
    is still ending) the later one is known with its uid; of a pod whose containers have no
    cgroup in common (containerd's older form) the later ones with the container.
    """
    made: dict[str, Identity] = {}
    taken: dict[str, Identity] = {}
    for path in sorted(named, key=lambda one: (one not in held, one)):
        who, place = named[path]
        for instance in _spellings(who, place, held.get(path, ""), taken):
            if instance not in taken:
                made[path] = taken[instance] = replace(who, instance=instance)
                break
    return made


def _spellings(
    who: Identity, place: Place, held: str, taken: Mapping[str, Identity]
) -> Iterable[str]:
    if held.startswith(who.instance):
        yield held
    yield who.instance
    if taken[who.instance].uid == who.uid and place.container:
        yield f"{who.instance}/{place.container[:_SHORT_ID]}"
    yield f"{who.instance}~{who.uid[:_SHORT_UID]}"
    yield f"{who.instance}~{who.uid}{place.root}"


def with_parents(subjects: Mapping[str, Identity]) -> list[Identity]:
    """Each with the nearest subject whose cgroup it lies in."""
    made = []
    for path in sorted(subjects):
        above = path.rpartition("/")[0]
        while above and above not in subjects:
            above = above.rpartition("/")[0]
        parent = subjects[above].instance if above else ""
        made.append(replace(subjects[path], parent=parent))
    return made
