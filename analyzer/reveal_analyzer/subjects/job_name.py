"""The job that a subject belongs to, by the name that it has on all nodes."""

from __future__ import annotations

import re

from reveal_contract.subjects import Identity

_PID = re.compile(r"\[\d+\]\Z")
_INSTANCE = re.compile(r"@[^/@]*(?=\.(?:service|scope|slice)\Z)")  # of a template unit of systemd


def job_name(instance: str, identity: Identity | None, node: str) -> str:
    """Return the job or controller of a pod, or the subject without the parts that nodes vary."""
    if identity is None or not identity.namespace:
        return _INSTANCE.sub("@", _PID.sub("", instance))
    if (
        identity.owner.startswith("Node/") and not identity.job
    ):  # the name of a static pod ends with its node
        return f"{identity.namespace}/{identity.name.removesuffix(f'-{node}')}"
    return f"{identity.namespace}/{identity.job or identity.owner or identity.name}"


def has_process_id(instance: str) -> bool:
    """Return whether a subject is a group of processes, which is named by the id of its leader."""
    return bool(_PID.search(instance))
