"""A namespace of a cluster with something to talk to on every node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cluster.handle import Cluster
from support.api_server import Kube, Object


@dataclass(frozen=True)
class NodeNetwork:
    """A cluster, and a namespace with something to talk to on every node."""

    cluster: Cluster
    kube: Kube
    namespace: str

    def pods(self, app: str) -> dict[str, Object]:
        """By node."""
        found = self.kube.items("v1", "Pod", self.namespace, f"app={app}")
        return {
            item["spec"]["nodeName"]: item
            for item in found
            if "deletionTimestamp" not in item["metadata"]
        }

    def shell(self, pod: str, text: str) -> str:
        """What a shell in a pod prints."""
        return self.cluster.kubectl("-n", self.namespace, "exec", pod, "--", "sh", "-c", text)

    def node_ready(self, name: str) -> str:
        """``True``, ``False`` or ``Unknown``."""
        node: Any = self.kube.get("v1", "Node", name)
        conditions = node["status"]["conditions"]
        return str(
            next(condition["status"] for condition in conditions if condition["type"] == "Ready")
        )
