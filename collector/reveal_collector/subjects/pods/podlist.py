"""Pods of this node, with the fields that attribution needs, from JSON of the Kubernetes API.

Field names are those of core/v1 Pod (metadata, spec, status) in the Kubernetes API reference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from reveal_contract.kube.pod_metadata import controller_of, job_of, text_of
from reveal_contract.subjects import MAX_GPUS

# The kubelet's own uid of a static pod; the mirror pod in the API has another uid.
_CONFIG_HASH = "kubernetes.io/config.hash"
_STATUSES = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
_GPU = "/gpu"  # nvidia.com/gpu, amd.com/gpu: a GPU, or a part of it where the plugin shares GPUs
# of the two drivers; other resources of this domain are memory, or only permit to monitor
_INTEL_GPUS = ("gpu.intel.com/i915", "gpu.intel.com/xe")
_MOST_DIGITS = 9  # of an amount


@dataclass(frozen=True, slots=True)
class Pod:
    """One pod; ``containers`` maps container ids, without the runtime's prefix, to names.

    ``owner`` is its controller, ``job`` what its labels say that it belongs to: ``Kind/name``.
    ``gpus`` is the sum over its containers, at most ``MAX_GPUS``.
    """

    uid: str
    namespace: str
    name: str
    containers: Mapping[str, str] = field(default_factory=dict)
    config_hash: str = ""
    owner: str = ""
    job: str = ""
    qos: str = ""
    host_network: bool = False
    node: str = ""
    mains: tuple[str, ...] = ()  # names of the containers that are neither init nor ephemeral
    gpus: int = 0

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


class PodIndex:
    """Immutable index of pods by container id and by uid."""

    def __init__(self, pods: Iterable[Pod] = ()) -> None:
        self.pods = tuple(pods)
        self._by_uid: dict[str, Pod] = {}
        self._by_container: dict[str, Pod] = {}
        for pod in self.pods:
            self._by_uid[pod.uid] = pod
            if pod.config_hash:
                self._by_uid.setdefault(pod.config_hash, pod)
            self._by_container.update(dict.fromkeys(pod.containers, pod))

    def find(self, uid: str, container: str = "") -> Pod | None:
        """Return a pod by container id, else by uid: static pods may share a hash as their uid."""
        return self._by_container.get(container) or self._by_uid.get(uid)


class PodSource(Protocol):
    """Source of the pods of this node; ``health_error`` says why its list may be outdated.

    ``is_listed`` says whether it has had a list since it was created.
    """

    health_error: str
    is_listed: bool

    @property
    def index(self) -> PodIndex: ...

    def start(self, changed: Callable[[], None]) -> None:
        """Start to follow the pods; ``changed`` is called from any thread after a new index."""

    def stop(self) -> None: ...


class NoPods:
    """Source without pods: no Kubernetes, or none requested."""

    health_error = ""
    is_listed = True
    index = PodIndex()

    def start(self, changed: Callable[[], None]) -> None:
        """Do nothing."""

    def stop(self) -> None:
        """Do nothing."""


def pod_of(row: object) -> Pod | None:
    """Return the pod of an API object, or ``None`` if the object is not a pod."""
    if not isinstance(row, Mapping):
        return None
    meta, spec, status = (_mapping(row, part) for part in ("metadata", "spec", "status"))
    uid, name = text_of(meta, "uid"), text_of(meta, "name")
    if not uid or not name:
        return None
    return Pod(
        uid=uid,
        namespace=text_of(meta, "namespace") or "default",
        name=name,
        containers=_containers(status),
        config_hash=text_of(_mapping(meta, "annotations"), _CONFIG_HASH),
        owner=controller_of(meta),
        job=job_of(meta),
        qos=text_of(status, "qosClass"),
        host_network=spec.get("hostNetwork") is True,
        node=text_of(spec, "nodeName"),
        mains=tuple(text_of(row, "name") for row in _mains(spec)),
        gpus=_gpus(spec),
    )


def pods_of(rows: object) -> list[Pod]:
    """Return the pods of a list from the API or from ``kubectl get pods -o json``.

    Raises ``ValueError`` if there is no list of items.
    """
    items = rows.get("items") if isinstance(rows, Mapping) else rows
    if not isinstance(items, list):
        raise ValueError("no list of pods: it has no items")
    return [pod for item in items if (pod := pod_of(item)) is not None]


def _containers(status: Mapping[str, Any]) -> dict[str, str]:
    """Return names by container id, with the previous id: its cgroup may outlive a restart."""
    found: dict[str, str] = {}
    for group in _STATUSES:
        rows = status.get(group)
        for row in rows if isinstance(rows, list) else ():
            if not isinstance(row, Mapping):
                continue
            ended = _mapping(_mapping(row, "lastState"), "terminated")
            for container_id in (text_of(ended, "containerID"), text_of(row, "containerID")):
                id_ = container_id.rpartition("//")[2]
                if id_:
                    found[id_] = text_of(row, "name")
    return found


def _mains(spec: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the containers that are neither init nor ephemeral."""
    rows = spec.get("containers")
    return [row for row in rows if isinstance(row, Mapping)] if isinstance(rows, list) else []


def _gpus(spec: Mapping[str, Any]) -> int:
    """Return the GPUs of all containers by their limits, which a device plugin needs."""
    limits = (_mapping(_mapping(row, "resources"), "limits") for row in _mains(spec))
    named = (item for each in limits for item in each.items())
    return min(sum(_amount(amount) for name, amount in named if _is_gpu(name)), MAX_GPUS)


def _is_gpu(resource: object) -> bool:
    return isinstance(resource, str) and (resource.endswith(_GPU) or resource in _INTEL_GPUS)


def _amount(value: object) -> int:
    """Return a whole amount of a resource, as the API writes it; 0 for anything else."""
    if isinstance(value, int) and not isinstance(value, bool):
        return max(0, value)
    if not isinstance(value, str) or not value.isascii() or len(value) > _MOST_DIGITS:
        return 0
    return int(value) if value.isdecimal() else 0


def _mapping(row: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = row.get(key)
    return value if isinstance(value, Mapping) else {}
