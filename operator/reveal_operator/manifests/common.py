"""Common parts of all manifests: names, labels, owner, environment, hashes."""

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
REVISIONS = 3  # for a manual roll-back; each is an object of the API
_POD_FIELDS = {
    NODE_VARIABLE: "spec.nodeName",
    POD_VARIABLE: "metadata.name",
    NAMESPACE_VARIABLE: "metadata.namespace",
}


def labels(profile: Profile, component: str) -> dict[str, str]:
    """Return the labels of an object, its pods and its selector.

    A selector cannot change, so they depend on the name of the profile only.
    """
    return {
        LABEL_NAME: APP,
        LABEL_COMPONENT: component,
        LABEL_MANAGED_BY: OPERATOR_MANAGER,
        LABEL_PROFILE: label_value(profile.name),
    }


def metadata(profile: Profile, defaults: Defaults, component: str) -> Manifest:
    """Return metadata with the profile as owner: the object is deleted with it."""
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
    """Return the names of pod, namespace and node, by the downward API."""
    return [
        {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
        for name, path in _POD_FIELDS.items()
    ]


def settings_volume(profile: Profile, key: str) -> Manifest:
    """Return a volume with one file of the profile's ConfigMap: that of the component."""
    items = [{"key": key, "path": key}]
    name = child_name(SETTINGS, profile.name)
    return {"name": SETTINGS, "configMap": {"name": name, "items": items}}


def run_volume(size: str) -> Manifest:
    """Return a volume in memory: a file touched each second must not wear a disk."""
    return {"name": RUN_VOLUME, "emptyDir": {"medium": "Memory", "sizeLimit": size}}


def mount(name: str, path: str, read_only: bool = True) -> Manifest:
    """Return a mount of a volume."""
    return {"name": name, "mountPath": path, **({"readOnly": True} if read_only else {})}


def run_mount() -> Manifest:
    """Return the mount of the run volume."""
    return mount(RUN_VOLUME, RUN_FOLDER, read_only=False)


def pull_secrets(defaults: Defaults) -> dict[str, Any]:
    """Return the field of a pod spec with the Secrets for images."""
    names = [{"name": name} for name in defaults.image_pull_secrets]
    return {"imagePullSecrets": names} if names else {}


def resources(desired: Mapping[str, Any]) -> dict[str, Any]:
    """Return the field of a container with its resources."""
    return {"resources": dict(desired)} if desired else {}


def fingerprint(text: str) -> str:
    """Return a short hash: new settings make a new pod template, and so new pods."""
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
