"""Which rights an account has by RBAC, and which of them it used, by the audit log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from cluster.plane import ControlPlane
from support.api_server import Kube, Object

_RBAC = "rbac.authorization.k8s.io/v1"
_CREATED = 201


class Right(NamedTuple):
    """A verb on a resource; ``resource`` with its subresource, as ``nodes/status``."""

    group: str
    resource: str
    verb: str


class Use(NamedTuple):
    """What an account did, and what it was refused (with the API server's reason)."""

    granted: frozenset[Right]
    refused: frozenset[tuple[Right, str]]


def granted(kube: Kube, namespace: str, account: str) -> frozenset[Right]:
    """All that RoleBindings and ClusterRoleBindings give to a service account by name."""
    found: set[Right] = set()
    for kind in ("RoleBinding", "ClusterRoleBinding"):
        for binding in kube.items(_RBAC, kind):
            if _names(binding, namespace, account):
                found.update(_rights(_role(kube, binding)))
    return frozenset(found)


def used(plane: ControlPlane, namespace: str, account: str) -> Use:
    """What a service account asked for since the control plane started."""
    user = f"system:serviceaccount:{namespace}:{account}"
    done: set[Right] = set()
    refused: set[tuple[Right, str]] = set()
    for event in plane.audited():
        if event["user"]["username"] != user or not event.get("objectRef", {}).get("resource"):
            continue  # of others, or discovery, which everybody may read
        rights = tuple(_asked(event))
        if event["responseStatus"].get("code") == 403:
            why = event["responseStatus"].get("message", "")
            refused.update((right, why) for right in rights)
        else:
            done.update(rights)
    return Use(frozenset(done), frozenset(refused))


def _asked(event: Object) -> Iterator[Right]:
    about = event["objectRef"]
    resource = "/".join(filter(None, (about["resource"], about.get("subresource"))))
    group = about.get("apiGroup", "")
    yield Right(group, resource, event["verb"])
    # an apply that makes the object is authorized as a creation, too
    if event["verb"] == "patch" and event["responseStatus"].get("code") == _CREATED:
        yield Right(group, resource, "create")


def _names(binding: Object, namespace: str, account: str) -> bool:
    return any(
        (subject["kind"], subject["name"], subject.get("namespace"))
        == ("ServiceAccount", account, namespace)
        for subject in binding.get("subjects") or ()
    )


def _role(kube: Kube, binding: Object) -> Object:
    of = binding["roleRef"]
    role = kube.get(_RBAC, of["kind"], of["name"], binding["metadata"].get("namespace", ""))
    assert role is not None, f"{binding['metadata']['name']} names a role that is not there"
    return role


def _rights(role: Object) -> Iterable[Right]:
    rules: list[dict[str, Any]] = role.get("rules") or []
    for rule in rules:
        for group in rule.get("apiGroups", ()):
            for resource in rule.get("resources", ()):
                for verb in rule["verbs"]:
                    yield Right(group, resource, verb)
