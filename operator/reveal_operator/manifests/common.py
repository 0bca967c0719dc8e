"""What all children have in common: names, labels, owner, environment, hashes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from reveal_contract.kube.names import (
    API_VERSION,
    APP,
    LABEL_COMPONENT,
    LABEL_MANAGED_BY,
    LABEL_NAME,
    LABEL_PROFILE,
    NAMESPACE_VARIABLE,
    NODE_VARIABLE,
    OPERATOR_MANAGER,
    POD_VARIABLE,
    PROFILE_KIND,
    RUN_FOLDER,
    child_name,
    label_value,
)
from reveal_operator.profile import Defaults, Profile

Manifest = dict[str, Any]

SETTINGS = "settings"  # component of the ConfigMap, and the name of its volume
RUN_VOLUME = "run"
REVISIONS = 3  # to roll back by hand; each is an object of the API
_POD_FIELDS = {
    NODE_VARIABLE: "spec.nodeName",
    POD_VARIABLE: "metadata.name",
    NAMESPACE_VARIABLE: "metadata.namespace",
}


def labels(profile: Profile, component: str) -> dict[str, str]:
    """Of a child, its pods and its selector, which cannot change: of nothing but the name."""
    return {
        LABEL_NAME: APP,
        LABEL_COMPONENT: component,
        LABEL_MANAGED_BY: OPERATOR_MANAGER,
        LABEL_PROFILE: label_value(profile.name),
    }


def metadata(profile: Profile, defaults: Defaults, component: str) -> Manifest:
    """Deleted by the garbage collector with its profile, which it does not keep from going."""
    return {
        "name": child_name(component, profile.name),
        "namespace": defaults.namespace,
        "labels": labels(profile, component),
        "ownerReferences": [
            {
                "apiVersion": API_VERSION,
                "kind": PROFILE_KIND,
                "name": profile.name,
                "uid": profile.uid,
                "controller": True,
                "blockOwnerDeletion": False,
            }
        ],
    }


def pod_environment() -> list[Manifest]:
    """Who and where the pod is, by the downward API."""
    return [
        {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
        for name, path in _POD_FIELDS.items()
    ]


def settings_volume(profile: Profile, key: str) -> Manifest:
    """One file of the profile's ConfigMap: a component sees its own only."""
    items = [{"key": key, "path": key}]
    name = child_name(SETTINGS, profile.name)
    return {"name": SETTINGS, "configMap": {"name": name, "items": items}}


def run_volume(size: str) -> Manifest:
    """In memory: a file touched each second shall wear no disk; it outlives the container."""
    return {"name": RUN_VOLUME, "emptyDir": {"medium": "Memory", "sizeLimit": size}}


def mount(name: str, path: str, read_only: bool = True) -> Manifest:
    return {"name": name, "mountPath": path, **({"readOnly": True} if read_only else {})}


def run_mount() -> Manifest:
    return mount(RUN_VOLUME, RUN_FOLDER, read_only=False)


def pull_secrets(defaults: Defaults) -> dict[str, Any]:
    names = [{"name": name} for name in defaults.image_pull_secrets]
    return {"imagePullSecrets": names} if names else {}


def resources(wanted: Mapping[str, Any]) -> dict[str, Any]:
    return {"resources": dict(wanted)} if wanted else {}


def fingerprint(text: str) -> str:
    """A short hash: new settings are a new pod template, and so new pods."""
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
