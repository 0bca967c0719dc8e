"""The security contexts: the collector's from the table of needs, the analyzer's without rights."""

from __future__ import annotations

from typing import Any

from reveal_operator.manifests.privileges import (
    APPARMOR,
    SECCOMP,
    SELINUX,
    NeedKind,
    names_of,
)
from reveal_operator.profile import CollectorSpec, Privilege

USER = 65_532  # of the analyzer: "nonroot" of the images, in no passwd file of a host
# the field came with 1.30; 1.29 refuses it and knows only the annotation
APPARMOR_FIELD_MINOR = 30
APPARMOR_ANNOTATION = "container.apparmor.security.beta.kubernetes.io/"

_UNCONFINED = {"type": "Unconfined"}
_RUNTIME_DEFAULT = {"type": "RuntimeDefault"}


def of_collector(collector: CollectorSpec, minor: int) -> dict[str, Any]:
    """Return the collector's security context: privileged, or with the rights of the table."""
    lifted = names_of(collector, NeedKind.UNCONFINED)
    context: dict[str, Any] = {
        "runAsUser": 0,
        "runAsGroup": 0,
        "runAsNonRoot": False,
        "readOnlyRootFilesystem": True,
        # also where it is privileged: some runtimes keep their filter even then
        "seccompProfile": dict(_UNCONFINED if SECCOMP in lifted else _RUNTIME_DEFAULT),
    }
    if APPARMOR in lifted and minor >= APPARMOR_FIELD_MINOR:
        context["appArmorProfile"] = dict(_UNCONFINED)
    if collector.privilege is Privilege.PRIVILEGED:
        # the API refuses a privileged container without privilege escalation
        return {**context, "privileged": True, "allowPrivilegeEscalation": True}
    if SELINUX in lifted:
        context["seLinuxOptions"] = {"type": "spc_t"}
    added = list(names_of(collector, NeedKind.CAPABILITY))
    return {
        **context,
        "privileged": False,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"], "add": added},
    }


def annotations_of_collector(
    collector: CollectorSpec, container: str, minor: int
) -> dict[str, str]:
    """Return the AppArmor annotation for API servers that do not know the field."""
    if minor >= APPARMOR_FIELD_MINOR or APPARMOR not in names_of(collector, NeedKind.UNCONFINED):
        return {}
    return {f"{APPARMOR_ANNOTATION}{container}": "unconfined"}


def of_analyzer_pod() -> dict[str, Any]:
    """Return the pod's context: an unprivileged user; fits Pod Security ``restricted``."""
    return {
        "runAsNonRoot": True,
        "runAsUser": USER,
        "runAsGroup": USER,
        "fsGroup": USER,
        "seccompProfile": dict(_RUNTIME_DEFAULT),
    }


def of_analyzer() -> dict[str, Any]:
    """Return the container's context."""
    return {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
