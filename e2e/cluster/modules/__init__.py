"""The Go modules that pin what is built: which versions, and the sums of all their sources."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Module:
    """A folder with go.mod and go.sum."""

    folder: Path

    @property
    def text(self) -> str:
        return (self.folder / "go.mod").read_text()

    @property
    def go(self) -> str:
        """The oldest Go that builds it: ``1.24.0``."""
        return self._find(r"^go (\S+)$")

    def version(self, path: str) -> str:
        """The version that is pinned of a module: ``v1.34.4``."""
        return self._find(rf"^(?:require )?\s*{re.escape(path)} (v\S+)")

    def _find(self, pattern: str) -> str:
        found = re.search(pattern, self.text, re.MULTILINE)
        if found is None:
            raise LookupError(f"{self.folder / 'go.mod'} has no line like {pattern}")
        return found[1]


KUBERNETES = Module(_FOLDER / "kubernetes")
HELM = Module(_FOLDER / "helm")
COREDNS = Module(_FOLDER / "coredns")
KUBERNETES_PATH = "k8s.io/kubernetes"
ETCD_PATH = "go.etcd.io/etcd/server/v3"
HELM_PATH = "helm.sh/helm/v3"
COREDNS_PATH = "github.com/coredns/coredns"
