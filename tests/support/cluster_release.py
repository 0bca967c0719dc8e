"""A release of the chart on real nodes, what it finds there, and pods that do harm."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster.handle import Cluster
from reveal_contract.finding import rfc3339
from reveal_contract.kube import names
from reveal_contract.kube.names import ANALYZER, COLLECTOR, child_name
from support.api_server import Kube, Object, condition, wait_for
from support.helm_chart import CHART, NAMESPACE, ROOT, Helm

PROFILE = "gpu-nodes"
_HISTORY = {"spec": {"evidence": {"historyHours": 1}}}
GPU_LABEL = "nvidia.com/gpu.present"
_EVENTS = "events.k8s.io/v1"
ENFORCE = "pod-security.kubernetes.io/enforce"
# a busy machine takes its time to start six processes of Python
_READY_S = 180.0
_LEARNED_S = 240.0
_EARLY_NS = 2_000_000_000


_TRAIN = """
import numpy, time
weights = numpy.random.rand(300, 300)
while True:
    began = time.monotonic()
    for _ in range(8):
        weights @ weights
    time.sleep(max(0.0, 0.25 - (time.monotonic() - began)))
"""
_COMPUTE = """
import numpy
weights = numpy.random.rand(300, 300)
while True:
    weights @ weights
"""
# numpy's own threads would make of each product a matter of the whole machine
SINGLE_THREAD: Object = {"name": "OPENBLAS_NUM_THREADS", "value": "1"}
# a job that computes a part of the time, as steady as can be; without a request it would be
# entitled to nothing beside a pod that has one, and nobody could take that from it
TRAINING: Object = {
    "command": ["python3", "-u", "-c", _TRAIN],
    "env": [SINGLE_THREAD],
    "resources": {"requests": {"cpu": "500m"}},
}
# a job that always computes: whoever takes a CPU from it, takes it as long as both are there
COMPUTING: Object = {
    **TRAINING,
    "command": ["python3", "-c", _COMPUTE],
    "resources": {"requests": {"cpu": "100m"}},
}


@dataclass(frozen=True)
class Release:
    """A cluster with the chart installed and the smallest profile applied."""

    cluster: Cluster
    kube: Kube

    @property
    def profile(self) -> Object:
        return self.kube.get(names.API_VERSION, names.PROFILE_KIND, PROFILE) or {}

    @property
    def telemetry(self) -> Object:
        status: Object = self.profile.get("status", {}).get("telemetry", {})
        return status

    def reports(self, since: str = "") -> list[Object]:
        """Those first seen at that time or later, oldest first, whose status is written, too."""
        found = self.kube.items(names.API_VERSION, names.REPORT_KIND)
        anomalies = [
            item for item in found if item["spec"]["kind"] == "Anomaly" and "status" in item
        ]
        recent = [anomaly for anomaly in anomalies if anomaly["spec"]["firstSeenTime"] >= since]
        return sorted(recent, key=lambda item: str(item["spec"]["firstSeenTime"]))

    def report(self, name: str) -> Object:
        found = self.kube.get(names.API_VERSION, names.REPORT_KIND, name)
        assert found is not None
        return found

    def events(self, report: str, kind: str = "Node") -> list[str]:
        """Reasons of the Events that are related to a report, oldest first."""
        found = self.kube.items(_EVENTS, "Event")
        ours = [
            item for item in found
            if item.get("related", {}).get("name") == report and item["regarding"]["kind"] == kind
        ]  # fmt: skip
        return [
            str(item["reason"]) for item in sorted(ours, key=lambda item: str(item["eventTime"]))
        ]

    def pods_with_events(self, report: str) -> set[str]:
        """The pods that Events related to a report are about, ``namespace/name``."""
        found = self.kube.items(_EVENTS, "Event")
        pods = [
            item["regarding"] for item in found
            if item.get("related", {}).get("name") == report and item["regarding"]["kind"] == "Pod"
        ]  # fmt: skip
        return {f"{pod['namespace']}/{pod['name']}" for pod in pods}

    def watch(self, *nodes: str) -> None:
        """Label these nodes as those with GPUs, no others; until all of them are learned."""
        for name in (*self.cluster.nodes, *self.cluster.vms):
            label = "true" if name in nodes else None
            target = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
            self.kube.patch(target, {"metadata": {"labels": {GPU_LABEL: label}}})
        wait_for(lambda: self.profile["status"].get("desiredNodes") == len(nodes), 60, "its nodes")
        wait_for(lambda: _holds(self.profile, "Ready"), _READY_S, "the profile is Ready")
        wait_for(lambda: self._learned(len(nodes)), _LEARNED_S, "the nodes are learned")

    def change(self, **spec: Any) -> None:
        """Merge into the profile's spec; until its pods are those of it, on nodes that are learned.

        A field that is None goes.
        """
        words = ("patch", "rvp", PROFILE, "--type=merge", "--patch", json.dumps({"spec": spec}))
        self.cluster.kubectl(*words)
        wait_for(self._is_observed, _READY_S, "the operator has seen to it")
        for kind, component in (("daemonset", COLLECTOR), ("deployment", ANALYZER)):
            rolled_out(self.cluster, f"{kind}/{child_name(component, PROFILE)}")
        wait_for(lambda: self._learned(len(self.labelled)), _LEARNED_S, "the nodes are learned")

    @property
    def labelled(self) -> list[str]:
        """The nodes that are watched."""
        found = self.kube.items("v1", "Node", labels=f"{GPU_LABEL}=true")
        return sorted(item["metadata"]["name"] for item in found)

    def _is_observed(self) -> bool:
        profile = self.profile
        return bool(profile["status"]["observedGeneration"] >= profile["metadata"]["generation"])

    def calm(self, seconds: float = 120) -> None:
        """Until nothing is open, so that what comes next is of what comes next."""

        def nothing_open() -> bool:
            if listed := self.open():
                raise AssertionError("; ".join(listed))
            return True

        wait_for(nothing_open, seconds, "nothing is open")

    def open(self) -> list[str]:
        return [
            summary(report) for report in self.reports() if report["status"]["state"] != "Resolved"
        ]

    def _learned(self, count: int) -> bool:
        status = self.telemetry
        return status.get("nodesReporting") == count and status.get("nodesLearning") == 0

    @contextmanager
    def pod(
        self,
        namespace: str,
        node: str,
        name: str,
        files: Mapping[str, Path] | None = None,
        **container: Any,
    ) -> Iterator[None]:
        """A pod of the workload image on a node, gone afterwards; it runs when this is entered.

        ``files`` of the machine are mounted at these paths.
        """
        manifest = workload(
            self.cluster.image("reveal-workload"), namespace, node, name, **container
        )
        mount(manifest, files or {})
        self.kube.create(manifest)
        try:
            wait_for(lambda: self._runs(namespace, name), 60, f"{name} runs")
            yield
        finally:
            self.kube.delete(manifest)

    def _runs(self, namespace: str, name: str) -> bool:
        pod = self.kube.get("v1", "Pod", name, namespace) or {}
        return bool(pod.get("status", {}).get("phase") == "Running")


def workload(image: str, namespace: str, node: str, name: str, **container: Any) -> Object:
    """A pod that the kubelet of that node runs, whatever the scheduler thinks."""
    main = {"name": "main", "image": image, **container}
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "nodeName": node, "terminationGracePeriodSeconds": 1, "restartPolicy": "Always",
            "containers": [main],
        },
    }  # fmt: skip


def mount(pod: Object, files: Mapping[str, Path]) -> None:
    """Files of the node's host, as volumes of the pod's first container."""
    spec = pod["spec"]
    spec["volumes"] = [
        {"name": f"file-{number}", "hostPath": {"path": str(file)}}
        for number, file in enumerate(files.values())
    ]
    spec["containers"][0]["volumeMounts"] = [
        {"name": f"file-{number}", "mountPath": path} for number, path in enumerate(files)
    ]


def install(cluster: Cluster, folder: Path, values: Mapping[str, str] | None = None) -> Release:
    """Install or upgrade the release with the images that the nodes have, and the profile.

    ``values``: instead of the Redis for evaluation.
    """
    kube = Kube(cluster.kubeconfig)
    kube.apply({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": NAMESPACE, "labels": {ENFORCE: "privileged"}},
    })  # fmt: skip
    registry, tag = parts(cluster.image("reveal-collector"))
    more = evaluation(cluster) if values is None else values
    given = {"image.registry": registry, "image.tag": tag, **more}
    # a tag of digits alone, or with one "e" among them, is no number
    flags = [
        word
        for key, value in given.items()
        for word in ("--set-string" if key.endswith("tag") else "--set", f"{key}={value}")
    ]
    helm = Helm(cluster.program("helm"), folder, cluster.kubeconfig)
    helm("upgrade", "reveal", CHART, "--install", "--namespace", NAMESPACE, *flags)
    rolled_out(cluster, "deployment/reveal-operator")
    cluster.kubectl("apply", "-f", str(ROOT / "examples" / "minimal.yaml"))
    cluster.kubectl("patch", "rvp", PROFILE, "--type=merge", "--patch", json.dumps(_HISTORY))
    watched = Release(cluster, kube)
    wait_for(lambda: watched.profile.get("status"), 60, "the operator takes the profile")
    return watched


def evaluation(cluster: Cluster) -> dict[str, str]:
    """The Redis that the chart brings, of the image that the nodes have."""
    registry, tag = parts(cluster.image("reveal-redis"))
    return {
        "evaluationRedis.enabled": "true",
        "evaluationRedis.image.registry": registry,
        "evaluationRedis.image.repository": "reveal-redis",
        "evaluationRedis.image.tag": tag,
    }


def rolled_out(cluster: Cluster, workload: str) -> None:
    """Wait until all pods of that Deployment or DaemonSet of the release are the latest ones."""
    limit = f"--timeout={_READY_S:.0f}s"
    cluster.kubectl("-n", NAMESPACE, "rollout", "status", workload, limit)


def parts(image: str) -> tuple[str, str]:
    """Registry and tag of ``localhost/NAME:TAG``."""
    path, _, tag = image.rpartition(":")
    return path.rpartition("/")[0], tag


def now() -> str:
    """As reports state times; a finding begins with its slice, a moment before what it tells."""
    return rfc3339(time.time_ns() - _EARLY_NS)


def cause(report: Object) -> str:
    """The name of its hypothesis; "" where none fits."""
    return str((report.get("status", {}).get("hypothesis") or {}).get("name", ""))


def summary(report: Object) -> str:
    """One line, for a person who reads the output of a test."""
    spec, status = report["spec"], report["status"]
    pods = status.get("podNames", "")
    where = f"{spec['nodeName']} {status['subsystem']}"
    return f"{where} {cause(report) or '-'} [{pods}] {status['claim']}"


def _holds(thing: Object, kind: str) -> bool:
    return bool(condition(thing, kind).get("status") == "True")
