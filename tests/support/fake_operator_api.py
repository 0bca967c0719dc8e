"""The Kubernetes API of the operator in memory, with errors on demand.

It keeps objects as a server does: uid, generation and resourceVersion, the status apart from the
rest, and a new version only where a write changes something.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

from reveal_contract.kube.errors import CONFLICT, ApiError
from reveal_contract.kube.names import PROFILE_KIND
from reveal_contract.kube.node_condition import CONDITION_TYPE
from reveal_operator.api import Manifest, Object, Page
from reveal_operator.drift import content
from reveal_operator.handlers import OWNED
from reveal_operator.observed import (
    ObservedObject,
    ObservedProfile,
    observed_object,
    observed_profile,
    profile_of,
)

Key = tuple[str, str]  # kind and name


class FakeOperatorApi:
    """``api.OperatorApi`` and, from the same objects, ``reconcile.View``.

    ``requests`` has verb, kind and name of each request; ``fail`` may return an error for one.
    """

    def __init__(self) -> None:
        self.objects: dict[Key, Object] = {}
        self.requests: list[tuple[str, str, str]] = []
        self.fail: Callable[[str, str], ApiError | None] = lambda verb, kind: None
        self.now_s = 0.0  # of the server's clock
        self._version = 0

    def now(self) -> float:
        return self.now_s

    @property
    def writes(self) -> list[tuple[str, str]]:
        """Verb and kind of each write, since they were last cleared."""
        return [
            (verb, kind) for verb, kind, _ in self.requests if verb not in ("get", "pages", "watch")
        ]

    def create_profile(self, name: str, spec: dict[str, Any] | None = None) -> None:
        """Create a RevealProfile, as a user does."""
        self._store(
            (PROFILE_KIND, name), {"kind": PROFILE_KIND, "metadata": {}, "spec": spec or {}}
        )

    def change_spec(self, kind: str, name: str, **fields: Any) -> None:
        """Change fields of a spec, as a user does."""
        changed = copy.deepcopy(self.objects[kind, name])
        changed["spec"] |= fields
        changed["metadata"]["generation"] += 1
        self._store((kind, name), changed)

    def set_status(self, kind: str, name: str, **status: Any) -> None:
        """Set the status, as a controller of the cluster does."""
        changed = copy.deepcopy(self.objects[kind, name])
        observed = {"observedGeneration": changed["metadata"]["generation"]}
        changed["status"] = {**changed.get("status", {}), **observed, **status}
        self._store((kind, name), changed)

    def profile(self, name: str) -> ObservedProfile | None:
        found = self.objects.get((PROFILE_KIND, name))
        return observed_profile(found) if found else None

    def profiles(self) -> list[ObservedProfile]:
        return [observed_profile(each) for each in self._of_kind(PROFILE_KIND)]

    def owned(self, profile: str) -> list[ObservedObject]:
        return [
            observed_object(kind, each)
            for kind in OWNED
            for each in self._of_kind(kind)
            if profile_of(each) == profile
        ]

    def content(self, config: str) -> str:
        found = self.objects.get(("ConfigMap", config))
        return content(found) if found else ""

    def get(self, kind: str, name: str, namespace: str = "") -> Object | None:
        self._request("get", kind, name)
        return copy.deepcopy(self.objects.get((kind, name)))

    def apply(self, manifest: Manifest, subresource: str = "") -> Object:
        kind, name = key = manifest["kind"], manifest["metadata"]["name"]
        self._request(f"apply {subresource}".strip(), kind, name)
        known = self.objects.get(key, {"metadata": {}})
        given = copy.deepcopy(dict(manifest))
        metadata = {**known["metadata"], **given.pop("metadata")}
        if "status" in given:  # of another field manager are the fields that are not applied
            given["status"] = {**known.get("status", {}), **given["status"]}
        changed = {**known, **given, "metadata": metadata}
        if changed != known:
            self._store(key, changed)
        return copy.deepcopy(self.objects[key])

    def create(self, manifest: Manifest) -> Object:
        key = manifest["kind"], manifest["metadata"]["name"]
        self._request("create", *key)
        self._store(key, copy.deepcopy(dict(manifest)))
        return self.objects[key]

    def merge(self, kind: str, name: str, namespace: str, patch: Manifest) -> Object:
        self._request("merge", kind, name)
        self._store((kind, name), {**self.objects[kind, name], **patch})
        return self.objects[kind, name]

    def remove_node_condition(self, name: str) -> None:
        self._request("remove", "Node", name)
        if node := self.objects.get(("Node", name)):
            left = [each for each in node["status"]["conditions"] if each["type"] != CONDITION_TYPE]
            node["status"] = {**node["status"], "conditions": left}

    def delete(
        self, kind: str, name: str, namespace: str = "", *, uid: str, version: str = ""
    ) -> bool:
        self._request("delete", kind, name)
        found = self.objects.get((kind, name))
        if found is None or found["metadata"]["uid"] != uid:
            return False
        del self.objects[kind, name]
        return True

    def pages(
        self, kind: str, namespace: str = "", labels: str = "", *, metadata: bool = False
    ) -> Iterator[Page]:
        self._request("pages", kind, "")
        yield Page([each for each in self._of_kind(kind) if _has(each, labels)], str(self._version))

    def watch(self, kind: str, since: str) -> Iterator[tuple[str, Object]]:
        self._request("watch", kind, "")
        yield from ()

    def serves(self, group: str, version: str) -> frozenset[str]:
        return frozenset(kind for kind, _ in self.objects)

    def _request(self, verb: str, kind: str, name: str) -> None:
        self.requests.append((verb, kind, name))
        if (error := self.fail(verb, kind)) is not None:
            raise error

    def _of_kind(self, kind: str) -> list[Object]:
        return [each for (of_kind, _), each in self.objects.items() if of_kind == kind]

    def _store(self, key: Key, changed: Object) -> None:
        self._version += 1
        created = {"name": key[1], "uid": f"uid-{self._version}", "generation": 1}
        version = {"resourceVersion": str(self._version)}
        self.objects[key] = {**changed, "metadata": {**created, **changed["metadata"], **version}}


def _has(item: Object, labels: str) -> bool:
    """Whether it has the labels of a selector ``a=b,c=d``."""
    selected = (pair.partition("=") for pair in labels.split(",") if pair)
    known = item["metadata"].get("labels") or {}
    return all(known.get(key) == value for key, _, value in selected)


def conflict(verb: str, kind: str) -> ApiError:
    """Return the error of a request that another writer overtook."""
    return ApiError(f"{verb} {kind}: the object has been modified", CONFLICT, "Conflict")
