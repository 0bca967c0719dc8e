"""The security contexts: the collector's from the table of its needs, the analyzer's without."""

from __future__ import annotations

from typing import Any

from reveal_operator.manifests.privileges import (
    APPARMOR,
    SECCOMP,
    SELINUX,
    Kind,
    names_of,
)
from reveal_operator.profile import Collector, Privilege

USER = 65_532  # of the analyzer: "nonroot" of the images, in no passwd of a host
# the field came with 1.30; 1.29 refuses it and knows the annotation only
APPARMOR_FIELD_MINOR = 30
APPARMOR_ANNOTATION = "container.apparmor.security.beta.kubernetes.io/"

_UNCONFINED = {"type": "Unconfined"}
_RUNTIME_DEFAULT = {"type": "RuntimeDefault"}


def of_collector(collector: Collector, minor: int) -> dict[str, Any]:
    """The container's security context: all of the host, or the single rights of the table."""
    lifted = names_of(collector, Kind.UNCONFINED)
    made: dict[str, Any] = {
        "runAsUser": 0,
        "runAsGroup": 0,
        "runAsNonRoot": False,
        "readOnlyRootFilesystem": True,
        # said even where it is privileged: some runtimes keep their filter then, too
        "seccompProfile": dict(_UNCONFINED if SECCOMP in lifted else _RUNTIME_DEFAULT),
    }
    if APPARMOR in lifted and minor >= APPARMOR_FIELD_MINOR:
        made["appArmorProfile"] = dict(_UNCONFINED)
    if collector.privilege is Privilege.PRIVILEGED:
        # the API refuses a privileged container that may not escalate
        return {**made, "privileged": True, "allowPrivilegeEscalation": True}
    if SELINUX in lifted:
        made["seLinuxOptions"] = {"type": "spc_t"}
    added = list(names_of(collector, Kind.CAPABILITY))
    return {
        **made,
        "privileged": False,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"], "add": added},
    }


def annotations_of_collector(collector: Collector, container: str, minor: int) -> dict[str, str]:
    """What an API server without the field has to be told of AppArmor."""
    if minor >= APPARMOR_FIELD_MINOR or APPARMOR not in names_of(collector, Kind.UNCONFINED):
        return {}
    return {f"{APPARMOR_ANNOTATION}{container}": "unconfined"}


def of_analyzer_pod() -> dict[str, Any]:
    """Nobody's user, whose group owns the volumes; fits Pod Security ``restricted``."""
    return {
        "runAsNonRoot": True,
        "runAsUser": USER,
        "runAsGroup": USER,
        "fsGroup": USER,
        "seccompProfile": dict(_RUNTIME_DEFAULT),
    }


def of_analyzer() -> dict[str, Any]:
    return {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
