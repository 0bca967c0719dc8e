"""The images at work: the operator's makes the children of a profile on a real API server, and
those run from the collector's and the analyzer's image as the operator has written them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import redis

from cluster.daemons import free_ports
from cluster.plane import HOST, ControlPlane
from images.building import ROOT, Built
from images.container import Container, running
from images.pod import Node
from images.store import Store
from reveal_contract import names
from reveal_contract.kube.names import (
    API_VERSION,
    METRICS_PORT,
    ORIGIN_TOKEN,
    PROFILE_KIND,
    child_name,
)
from support.api_server import Kube, unique, wait_for
from support.component_processes import answer
from support.pod_tokens import pod_token
from support.redis_server import RedisLauncher

pytestmark = pytest.mark.timeout(1800)

NODE = "node-1"
SLICES = 10
ACCOUNTS = ("reveal-operator", "reveal-collector", "reveal-analyzer")
RBAC = "rbac.authorization.k8s.io"
NATIVE = "from reveal_collector.native import load; assert load().library"
Start = Callable[..., Container]


class ControlPlaneSetup:
    """A namespace with the accounts of the three, and what a kubelet would hand their pods."""

    def __init__(self, plane: ControlPlane, kube: Kube, namespace: str, folder: Path) -> None:
        self._plane, self._kube, self._folder = plane, kube, folder
        self.namespace = namespace
        self.created: list[dict[str, Any]] = []
        for name in ACCOUNTS:
            self._account(name)

    def node(self, account: str, **files: dict[str, str]) -> Node:
        """``files``: ConfigMaps, by the name of the volume that shows them."""
        volumes = {name: self._files(f"{account}-{name}", data) for name, data in files.items()}
        token = self._files(account, {
            "token": self._plane.token(self.namespace, account),
            "ca.crt": self._plane.authority.read_text(),
            "namespace": self.namespace,
        })  # fmt: skip
        fields = {
            "spec.nodeName": NODE,
            "metadata.name": f"{account}-0",
            "metadata.namespace": self.namespace,
        }
        server = {
            "KUBERNETES_SERVICE_HOST": HOST,
            "KUBERNETES_SERVICE_PORT": str(self._plane.port),
        }
        return Node(fields, volumes, token, server)

    def origin(self, pod: str) -> dict[str, str]:
        """The files of the volume with a token of a pod of collectors."""
        return {ORIGIN_TOKEN: pod_token(self._kube, self.namespace, pod, NODE)}

    def _account(self, name: str) -> None:
        """All rights: which ones are enough is tested with the chart's roles, elsewhere."""
        about = {"name": name, "namespace": self.namespace}
        self._kube.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": about})
        binding = {
            "apiVersion": f"{RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": unique(name)},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", **about}],
        }
        self.created.append(self._kube.create(binding))

    def _files(self, name: str, data: dict[str, str]) -> Path:
        folder = self._folder / name
        folder.mkdir()
        for key, text in data.items():
            (folder / key).write_text(text)
        return folder


@pytest.fixture
def setup(
    control_plane: ControlPlane, kube: Kube, namespace: str, tmp_path: Path
) -> Iterator[ControlPlaneSetup]:
    kube.install(*sorted((ROOT / "crds").glob("*.yaml")))
    tmp_path.chmod(0o755)  # the analyzer is nobody
    for parent in list(tmp_path.parents)[:2]:
        parent.chmod(0o755)
    setup = ControlPlaneSetup(control_plane, kube, namespace, tmp_path)
    yield setup
    for created in setup.created:
        kube.delete(created)


@pytest.fixture
def start(images: dict[str, Built], image_store: Store, container_runtime: str) -> Iterator[Start]:
    """Starts a container of an image: ``start("reveal-operator", pod, node)``."""
    with ExitStack() as stack:

        def started(name: str, pod: dict[str, Any], node: Node) -> Container:
            full_name = images[name].full_name
            return stack.enter_context(running(image_store, full_name, pod, node))

        yield started


@pytest.fixture
def profile(kube: Kube) -> Iterator[str]:
    name = unique("images")
    created = kube.create({
        "apiVersion": API_VERSION,
        "kind": PROFILE_KIND,
        "metadata": {"name": name},
        "spec": {"mode": "Observe", "analyzer": {"warmupSeconds": 10}},
    })  # fmt: skip
    yield name
    kube.delete(created)


@pytest.fixture
def server(redis_launcher: RedisLauncher) -> str:
    (port,) = free_ports(1)
    redis_launcher("--port", str(port), "--bind", HOST)
    return f"redis://{HOST}:{port}"


def operator_pod(namespace: str, redis_url: str) -> dict[str, Any]:
    """As the chart has it."""
    metrics, health = free_ports(2)
    return {
        "securityContext": {"runAsNonRoot": True, "runAsUser": 65532, "runAsGroup": 65532},
        "containers": [
            {
                "name": "operator",
                "args": [
                    "--namespace", namespace, "--redis-url", redis_url,
                    "--collector-image", "reveal-collector", "--analyzer-image", "reveal-analyzer",
                    "--metrics-port", str(metrics), "--health-port", str(health),
                ],
                "securityContext": {
                    "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                    "capabilities": {"drop": ["ALL"]},
                },
            }
        ],
    }  # fmt: skip


def pod_of(workload: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = workload["spec"]["template"]["spec"]
    return found


def test_a_profile_becomes_a_working_set_of_processes(
    setup: ControlPlaneSetup, kube: Kube, profile: str, server: str, start: Start
) -> None:
    operator = start(
        "reveal-operator", operator_pod(setup.namespace, server), setup.node("reveal-operator")
    )

    def child(api: str, kind: str, component: str) -> dict[str, Any]:
        assert operator.running, operator.log
        name = child_name(component, profile)
        found = kube.get(api, kind, name, setup.namespace)
        assert found is not None, f"no {kind} {name}:\n{operator.log}"
        return found

    daemonset = wait_for(lambda: child("apps/v1", "DaemonSet", "collector"), 30, "a DaemonSet")
    deployment = wait_for(lambda: child("apps/v1", "Deployment", "analyzer"), 30, "a Deployment")
    settings = child("v1", "ConfigMap", "settings")["data"]

    origin = setup.origin(f"{child_name('collector', profile)}-0")
    collector_node = setup.node("reveal-collector", settings=settings, origin=origin)
    collector = start("reveal-collector", pod_of(daemonset), collector_node)
    analyzer_node = setup.node("reveal-analyzer", settings=settings)
    analyzer = start("reveal-analyzer", pod_of(deployment), analyzer_node)

    client = redis.Redis.from_url(server)
    key = names.samples_key(profile, names.shard(NODE))

    def shipped() -> bool:
        assert collector.running, collector.log
        return client.xlen(key) >= SLICES

    wait_for(shipped, 60, f"{SLICES} slices")
    assert client.exists(names.node_key(profile, NODE)), collector.log
    assert collector.execute(["python3", "-c", NATIVE]) == 0
    probes = daemonset["spec"]["template"]["spec"]["containers"][0]
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        command = probes[probe]["exec"]["command"]
        assert collector.execute(command) == 0, f"{probe}: {collector.log}"

    def read() -> bool:
        assert analyzer.running, analyzer.log
        return all(answer(METRICS_PORT, path)[0] == 200 for path in ("/readyz", "/healthz"))

    wait_for(read, 60, "an analyzer that is ready")
    groups = client.xinfo_groups(key)
    assert groups and groups[0]["name"] == names.GROUP.encode()

    for process in (collector, analyzer, operator):
        assert process.stop(20) == 0, process.log


def test_a_wrong_setting_is_reported_in_a_single_line(
    images: dict[str, Built], start: Start
) -> None:
    """Not a traceback: it is what `kubectl logs` shows of a pod that does not start."""
    for name, wrong in (
        ("reveal-collector", "--no-such-flag"),
        ("reveal-analyzer", "--no-such-flag"),
        ("reveal-operator", "--no-such-flag"),
    ):
        pod = {"containers": [{"name": "wrong", "args": [wrong]}]}
        container = start(name, pod, Node())
        assert container.wait(60) == 2, container.log
        assert "Traceback" not in container.log
        assert wrong in container.log
