"""Small records of the objects that are watched, never whole objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reveal_contract.kube.names import API_VERSION, LABEL_PROFILE, PROFILE_KIND
from reveal_operator.drift import fingerprint, intent_of_live

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ObservedProfile:
    """A RevealProfile: its spec and its status."""

    name: str
    uid: str
    generation: int
    version: str
    deleting: bool
    spec: dict[str, Any]
    status: dict[str, Any]

    @property
    def body(self) -> dict[str, Any]:
        """The object, as far as the builders need it."""
        metadata = {"name": self.name, "uid": self.uid, "generation": self.generation}
        return {
            "apiVersion": API_VERSION,
            "kind": PROFILE_KIND,
            "metadata": metadata,
            "spec": self.spec,
        }

    @property
    def reference(self) -> dict[str, str]:
        """The object as log lines name it."""
        return {"kind": PROFILE_KIND, "name": self.name, "uid": self.uid}


@dataclass(frozen=True, slots=True)
class Workload:
    """The pods of a DaemonSet or Deployment; ``current``: its status is of this generation."""

    current: bool
    desired: int
    created: int
    updated: int
    ready: int
    available: int
    failing_conditions: tuple[tuple[str, str], ...] = ()  # reason and message

    @property
    def is_rolling(self) -> bool:
        """Whether pods of an older template exist, or may exist.

        A Deployment starts a pod before it ends an older one: then it has more than it should.
        """
        return self.updated < max(self.desired, self.created) or not self.current

    @property
    def is_complete(self) -> bool:
        """Whether all pods are available and have the latest template."""
        return self.available >= self.desired and not self.is_rolling


@dataclass(frozen=True, slots=True)
class ObservedObject:
    """An object that a profile owns."""

    kind: str
    name: str
    uid: str
    owner: str  # the profile's name, "" where it has no such owner
    owner_uid: str
    intent: str
    fingerprint: str
    deleting: bool
    workload: Workload | None = field(default=None)
    image: str = ""  # of the first container of its pods

    @property
    def key(self) -> tuple[str, str]:
        """Kind and name."""
        return self.kind, self.name


def observed_profile(body: Object) -> ObservedProfile:
    """Return the record of a RevealProfile."""
    metadata = body["metadata"]
    return ObservedProfile(
        name=metadata["name"],
        uid=metadata.get("uid", ""),
        generation=metadata.get("generation", 0),
        version=metadata.get("resourceVersion", ""),
        deleting="deletionTimestamp" in metadata,
        spec=dict(body.get("spec") or {}),
        status=dict(body.get("status") or {}),
    )


def observed_object(kind: str, body: Object) -> ObservedObject:
    """Return the record of an object."""
    metadata = body["metadata"]
    owner = owner_of(body)
    return ObservedObject(
        kind=kind,
        name=metadata["name"],
        uid=metadata.get("uid", ""),
        owner=owner.get("name", ""),
        owner_uid=owner.get("uid", ""),
        intent=intent_of_live(body),
        fingerprint=fingerprint(body),
        deleting="deletionTimestamp" in metadata,
        workload=_WORKLOADS[kind](body) if kind in _WORKLOADS else None,
        image=image_of(body) if kind in _WORKLOADS else "",
    )


def image_of(workload: Object) -> str:
    """Return the image of the first container in the pods of a workload."""
    template = (workload.get("spec") or {}).get("template") or {}
    containers: Sequence[Object] = (template.get("spec") or {}).get("containers") or ({},)
    return str(containers[0].get("image", ""))


def own_by_kind(
    profile: ObservedProfile, observed: Iterable[ObservedObject]
) -> dict[str, ObservedObject]:
    """Return the objects of a profile by kind, without those of an earlier one of its name."""
    return {each.kind: each for each in observed if each.owner_uid == profile.uid}


def owner_of(body: Object) -> dict[str, str]:
    """Return the reference to the profile that owns an object; empty where there is none."""
    for reference in body["metadata"].get("ownerReferences") or ():
        if reference.get("kind") == PROFILE_KIND and reference.get("apiVersion") == API_VERSION:
            return dict(reference)
    return {}


def profile_of(body: Object) -> str:
    """Return the profile of an object, by its owner, else by its label; "" without either."""
    labels = body["metadata"].get("labels") or {}
    return owner_of(body).get("name") or str(labels.get(LABEL_PROFILE, ""))


def _daemon_set(body: Object) -> Workload:
    """Read https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/daemon-set-v1/."""
    status = body.get("status") or {}
    return Workload(
        current=status.get("observedGeneration", 0) >= body["metadata"].get("generation", 0),
        desired=status.get("desiredNumberScheduled", 0),
        created=status.get("currentNumberScheduled", 0),
        updated=status.get("updatedNumberScheduled", 0),
        ready=status.get("numberReady", 0),
        available=status.get("numberAvailable", 0),
    )


def _deployment(body: Object) -> Workload:
    """Read https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/deployment-v1/."""
    status = body.get("status") or {}
    return Workload(
        current=status.get("observedGeneration", 0) >= body["metadata"].get("generation", 0),
        desired=(body.get("spec") or {}).get("replicas", 1),
        created=status.get("replicas", 0),
        updated=status.get("updatedReplicas", 0),
        ready=status.get("readyReplicas", 0),
        available=status.get("availableReplicas", 0),
        failing_conditions=tuple(_failing_conditions(status.get("conditions") or ())),
    )


def _failing_conditions(conditions: Any) -> list[tuple[str, str]]:
    """Return the conditions of a Deployment that say why pods cannot be created."""
    return [
        (condition.get("reason", ""), condition.get("message", ""))
        for condition in conditions
        if (condition.get("type"), condition.get("status")) in _FAILING
    ]


_FAILING = (("ReplicaFailure", "True"), ("Progressing", "False"))
_WORKLOADS = {"DaemonSet": _daemon_set, "Deployment": _deployment}
