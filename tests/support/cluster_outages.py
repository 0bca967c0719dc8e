"""What is killed on a real cluster while it watches, and how it is seen to be back."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from cluster.handle import Cluster
from reveal_contract import names as stream
from reveal_contract.kube import names
from support.api_server import Object, condition, wait_for
from support.cluster_release import PROFILE, Release
from support.helm_chart import NAMESPACE
from support.published_sources import evaluation_redis

COLLECTOR, ANALYZER, OPERATOR = names.COLLECTOR, names.ANALYZER, names.OPERATOR
REDIS = "evaluation-redis"
_BACK_S = 180.0
_CONTAINERD = "containerd://"


@dataclass(frozen=True)
class Pods:
    """The pods of a release, killed and looked into by what they are."""

    watched: Release

    @property
    def cluster(self) -> Cluster:
        return self.watched.cluster

    def of(self, component: str, node: str = "") -> list[Object]:
        """Those that are not about to end."""
        labels = f"{names.LABEL_COMPONENT}={component}"
        found = self.watched.kube.items("v1", "Pod", NAMESPACE, labels)
        return [
            item for item in found
            if "deletionTimestamp" not in item["metadata"]
            and node in ("", item["spec"].get("nodeName"))
        ]  # fmt: skip

    def kill(self, component: str, node: str = "") -> None:
        """SIGKILL, as the kernel or a bug would; return when the kubelet has started it again."""
        [pod] = self.of(component, node)
        before = restarts(pod)
        self.signal(pod)
        name = pod["metadata"]["name"]
        wait_for(lambda: restarts(self._named(name)) > before, _BACK_S, f"{name} restarts")

    def signal(self, pod: Object) -> None:
        container = pod["status"]["containerStatuses"][0]["containerID"]
        self.cluster.execute(
            pod["spec"]["nodeName"], "ctr", "-n", "k8s.io", "tasks", "kill", "--signal", "SIGKILL",
            container.removeprefix(_CONTAINERD),
        )  # fmt: skip

    def remove(self, pod: Object) -> None:
        """As it is lost with its node: it gives nothing back, and none of its name comes again."""
        name = pod["metadata"]["name"]
        words = ("delete", "pod", name, "--grace-period=0", "--force", "--wait=false")
        self.signal(pod)
        self.cluster.kubectl("-n", NAMESPACE, *words)

    def execute(self, pod: Object, *command: str) -> str:
        name = pod["metadata"]["name"]
        return self.cluster.kubectl("-n", NAMESPACE, "exec", name, "--", *command)

    def owner(self, node: str) -> str:
        """The analyzer that holds the lease of a node's shard; nobody while none does."""
        key = stream.owner_key(PROFILE, stream.shard(node))
        name: bytes | None = evaluation_redis(self.watched).get(key)
        return (name or b"").decode()

    def all_ready(self) -> bool:
        found = [pod for part in (COLLECTOR, ANALYZER, OPERATOR, REDIS) for pod in self.of(part)]
        return all(condition(pod, "Ready").get("status") == "True" for pod in found)

    def without_api(self, seconds: float) -> None:
        """The API server is gone for so long."""
        self.cluster.crash_api()
        try:
            time.sleep(seconds)
        finally:
            self.cluster.resume_api()

    def _named(self, name: str) -> Object:
        return self.watched.kube.get("v1", "Pod", name, NAMESPACE) or {}


def restarts(pod: Object) -> int:
    """How often its containers ended and were started again."""
    return sum(
        status["restartCount"] for status in pod.get("status", {}).get("containerStatuses", ())
    )


def recovered(watched: Release) -> None:
    """Wait until all pods are ready and all nodes report."""
    nodes = len(watched.cluster.nodes)
    wait_for(Pods(watched).all_ready, _BACK_S, "all pods are ready")
    wait_for(
        lambda: watched.telemetry.get("nodesReporting") == nodes, _BACK_S, "all nodes are heard"
    )


@contextmanager
def replicas(watched: Release, count: int) -> Iterator[None]:
    """So many analyzers, one afterwards."""
    _scale(watched, count)
    try:
        yield
    finally:
        _scale(watched, 1)


def _scale(watched: Release, count: int) -> None:
    watched.change(analyzer={"replicas": count})
    pods = Pods(watched)
    wait_for(lambda: len(pods.of(ANALYZER)) == count, _BACK_S, f"{count} analyzers")
    wait_for(pods.all_ready, _BACK_S, "they are ready")
