"""The Secret by which pods restrict who may read their metrics."""

from __future__ import annotations

from reveal_contract.kube.names import METRICS_ACCESS_FOLDER
from reveal_operator.manifests.common import Manifest, mount

VOLUME = "metrics-access"


def folder(secret: str) -> str:
    """Return where the processes find the files of the Secret; "" without one."""
    return METRICS_ACCESS_FOLDER if secret else ""


def volumes(secret: str) -> list[Manifest]:
    """Return the volume with the Secret, if there is one."""
    return [{"name": VOLUME, "secret": {"secretName": secret}}] if secret else []


def mounts(secret: str) -> list[Manifest]:
    """Return the mount of the Secret, if there is one."""
    return [mount(VOLUME, METRICS_ACCESS_FOLDER)] if secret else []
