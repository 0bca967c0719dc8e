"""The operator's image under the chart's manifests: its Deployment, the pod of `helm test`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster import plane
from cluster.daemons import free_ports
from cluster.plane import HOST, ControlPlane, Options
from images.building import Built
from images.container import Container, running
from images.pod import Node
from images.store import Store
from reveal_contract.kube.names import child_name
from support.api_server import wait_for
from support.chart_releases import Cluster
from support.helm_chart import NAMESPACE, program

pytestmark = pytest.mark.timeout(1800)

ACCOUNT = "reveal-operator"
PROFILE = "from-an-image"


def node(cluster: Cluster, folder: Path) -> Node:
    """What a kubelet hands a pod of the operator's account."""
    account = folder / "account"
    account.mkdir(parents=True)
    files = {
        "token": cluster.plane.token(NAMESPACE, ACCOUNT),
        "ca.crt": cluster.plane.authority.read_text(),
        "namespace": NAMESPACE,
    }
    for name, text in files.items():
        (account / name).write_text(text)
    folder.chmod(0o755)  # the pods are nobody
    for parent in list(folder.parents)[:2]:
        parent.chmod(0o755)
    server = {
        "KUBERNETES_SERVICE_HOST": HOST,
        "KUBERNETES_SERVICE_PORT": str(cluster.plane.port),
    }
    fields = {"metadata.namespace": NAMESPACE, "metadata.name": "reveal-operator-0"}
    return Node(fields, account=account, environment=server)


def helm_test_pod(cluster: Cluster, control_plane: ControlPlane) -> dict[str, Any]:
    """The pod of `helm test`, with addresses for the names that a cluster's DNS would resolve."""
    hooks = cluster.helm("get", "hooks", "reveal", "--namespace", NAMESPACE)
    [pod] = [item for item in yaml.safe_load_all(hooks) if item["kind"] == "Pod"]
    [container] = pod["spec"]["containers"]
    names = {
        f"reveal-operator.{NAMESPACE}.svc": HOST,
        "https://kubernetes.default.svc": control_plane.url,
    }
    for name, address in names.items():
        container["args"] = [word.replace(name, address) for word in container["args"]]
    spec: dict[str, Any] = pod["spec"]
    return spec


def test_the_operator_and_helm_test_run_as_the_chart_has_them(
    images: dict[str, Built], image_store: Store, container_runtime: str, tmp_path: Path
) -> None:
    image = images["reveal-operator"].full_name
    metrics, health = free_ports(2)
    ports = f"operator.metricsPort={metrics},operator.healthPort={health}"
    with plane.running(Options()) as control_plane:
        cluster = Cluster(control_plane, program(), tmp_path)
        cluster.upgrade("--set", f"redis.url=redis://redis.example.com:6379,{ports}")
        deployment = cluster.kube.get("apps/v1", "Deployment", "reveal-operator", NAMESPACE)
        assert deployment is not None
        pod = deployment["spec"]["template"]["spec"]
        target = node(cluster, tmp_path / "node")
        with running(image_store, image, pod, target) as operator:
            _works(cluster, operator)
            with running(image_store, image, helm_test_pod(cluster, control_plane), target) as test:
                assert test.wait(60) == 0, test.log
                assert f"operator ready, custom resources served, profiles: {PROFILE}" in test.log
            assert operator.stop(15) == 0, operator.log


def _works(cluster: Cluster, operator: Container) -> None:
    cluster.apply_profile(PROFILE)

    def created() -> bool:
        assert operator.running, operator.log
        return ("DaemonSet", child_name("collector", PROFILE)) in cluster.children(PROFILE)

    wait_for(created, 60, "a DaemonSet")
