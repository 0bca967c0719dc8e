"""Where the programs of the control plane are.

Never from PATH: what a machine happens to have is of any version. ``KUBEBUILDER_ASSETS``, the
variable of setup-envtest, names a folder with etcd, kube-apiserver and kubectl (more is taken
where it is there); all else is what ``building`` put into the cache.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from cluster import modules

ASSETS_VARIABLE = "KUBEBUILDER_ASSETS"
NEEDED = ("etcd", "kube-apiserver", "kubectl")
RUNNING = (*NEEDED, "kube-controller-manager")
ALL = (*RUNNING, "helm")
# of machines that run pods (``supervisor``): built only for those who want them
NODES = ("kube-scheduler", "kubelet", "kube-proxy", "coredns")


@dataclass(frozen=True)
class Binaries:
    """Programs by name."""

    paths: dict[str, Path]

    def __getitem__(self, name: str) -> Path:
        return self.paths[name]

    def __contains__(self, name: object) -> bool:
        return name in self.paths


def cache() -> Path:
    """The folder of built programs: of the user, shared by all checkouts."""
    version = modules.KUBERNETES.version(modules.KUBERNETES_PATH)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "reveal" / "kubernetes" / version


def find() -> Binaries:
    """What is there now; of ``ALL`` and ``NODES``, some or none may be missing."""
    folders = [cache()]
    if assets := os.environ.get(ASSETS_VARIABLE):
        folders.insert(0, Path(assets))
    found: dict[str, Path] = {}
    for path in (folder / name for folder in folders for name in (*ALL, *NODES)):
        if path.is_file() and os.access(path, os.X_OK):
            found.setdefault(path.name, path)
    return Binaries(found)


def missing(names: tuple[str, ...] = ALL) -> tuple[str, ...]:
    """Which of ``names`` are not there."""
    found = find()
    return tuple(name for name in names if name not in found)
