"""The pod watch at a real API server with its authorizer, and the join with real cgroups."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cluster.plane import ControlPlane
from reveal_collector.subjects.pods import api
from reveal_collector.subjects.pods.api import ApiPods, access_of
from reveal_contract.kube.names import NAMESPACE_VARIABLE, NODE_VARIABLE, POD_VARIABLE
from reveal_contract.recording import MAGIC
from reveal_contract.settings import CollectorSettings
from support.api_server import Kube, Launcher, Object, unique
from support.cgroup_pods import NEEDED, USAGE, Recorded, make, remove_all, work
from support.hosts.cgroups import Container, PodSpec
from support.polling import wait_until

RBAC = "rbac.authorization.k8s.io"
ACCOUNT = "collector"
# all that a collector may do
RULES = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]}]


@pytest.fixture(autouse=True)
def soon_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "MIN_RETRY_S", 0.05)
    monkeypatch.setattr(api, "OVER_SECONDS", 0.0)
    monkeypatch.setattr(api, "MAX_RETRY_S", 0.2)


def account(kube: Kube, namespace: str) -> str:
    """A token of a service account that has no right yet."""
    kube.create(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT}},
        namespace=namespace,
    )
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{ACCOUNT}/token"
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    return str(kube.request("POST", path, asked)["status"]["token"])


def allow(kube: Kube, namespace: str) -> None:
    name = f"{namespace}-{ACCOUNT}"
    subject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}
    kube.apply([
        {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": name},
         "rules": RULES},
        {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
         "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": name},
         "subjects": [subject]},
    ])  # fmt: skip


def add_pod(kube: Kube, namespace: str, name: str, node: str) -> Object:
    """A pod that is bound to a node; no kubelet will ever see it."""
    containers = [{"name": "worker", "image": "none"}]
    return kube.create(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
         "spec": {"nodeName": node, "containers": containers}},
        namespace=namespace,
    )  # fmt: skip


def remove_pod(kube: Kube, pod: Object) -> None:
    about = pod["metadata"]
    path = f"/api/v1/namespaces/{about['namespace']}/pods/{about['name']}"
    kube.request("DELETE", path, {"gracePeriodSeconds": 0})


class Watched:
    """A running pod watch and the files it reads, as the kubelet would mount them."""

    def __init__(self, plane: ControlPlane, node: str, folder: Path) -> None:
        self.token = folder / "token"
        self.settings = CollectorSettings(
            node, "", pod_source="api", pod_api=plane.url, pod_token_file=str(self.token),
            pod_ca_file=str(plane.authority),
        )  # fmt: skip
        assert self.settings.problems() == []
        self.pods = ApiPods(partial(access_of, self.settings), node)

    @property
    def names(self) -> set[str]:
        return {pod.name for pod in self.pods.index.pods}

    def has(self, *names: str) -> Callable[[], bool]:
        return lambda: self.names == set(names)


@pytest.fixture
def node() -> str:
    return unique("node")


@pytest.fixture
def watched(control_plane: ControlPlane, node: str, tmp_path: Path) -> Iterator[Watched]:
    created = Watched(control_plane, node, tmp_path)
    yield created
    created.pods.stop()


def test_watching_pods_needs_only_its_documented_rights(
    watched: Watched, kube: Kube, namespace: str, node: str
) -> None:
    watched.token.write_text(account(kube, namespace))
    allow(kube, namespace)
    first = add_pod(kube, namespace, "a", node)
    watched.pods.start(lambda: None)
    wait_until(watched.has("a"), "the list")
    add_pod(kube, namespace, "elsewhere", unique("node"))
    add_pod(kube, namespace, "b", node)
    wait_until(watched.has("a", "b"), "the watch")
    remove_pod(kube, first)
    wait_until(watched.has("b"), "the end of a pod")
    (pod,) = watched.pods.index.pods
    assert (pod.namespace, pod.node, pod.qos) == (namespace, node, "BestEffort")
    assert watched.pods.health_error == ""


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_pods_that_are_over_are_not_asked_for(
    watched: Watched, kube: Kube, namespace: str, node: str, phase: str
) -> None:
    """Nobody limits how many of them are bound to a node, and they may be large."""
    watched.token.write_text(account(kube, namespace))
    allow(kube, namespace)
    over, running = (add_pod(kube, namespace, name, node) for name in ("over", "running"))
    kube.patch(over, {"status": {"phase": phase}}, "status")
    watched.pods.start(lambda: None)
    wait_until(watched.has("running"), "the list")
    kube.patch(running, {"status": {"phase": phase}}, "status")
    wait_until(watched.has(), "the end of a pod")


def test_a_missing_right_is_reported_and_used_once_it_is_granted(
    watched: Watched, kube: Kube, namespace: str, node: str
) -> None:
    watched.token.write_text(account(kube, namespace))
    add_pod(kube, namespace, "a", node)
    watched.pods.start(lambda: None)
    wait_until(lambda: "403 pods is forbidden" in watched.pods.health_error, "the refusal")
    allow(kube, namespace)
    wait_until(watched.has("a"), "the list")
    wait_until(lambda: watched.pods.health_error == "", "no trouble")


def test_an_expired_token_is_replaced_once_the_kubelet_renewed_it(
    watched: Watched, kube: Kube, namespace: str, node: str
) -> None:
    good = account(kube, namespace)
    allow(kube, namespace)
    add_pod(kube, namespace, "a", node)
    watched.token.write_text(good[:-4] + "xxxx")  # a signature that is none
    watched.pods.start(lambda: None)
    wait_until(lambda: "401 Unauthorized" in watched.pods.health_error, "the refusal")
    watched.token.write_text(good)
    wait_until(watched.has("a"), "the list")
    assert good not in repr(watched.pods.health_error)


def test_a_missing_token_file_is_reported(watched: Watched) -> None:
    watched.pods.start(lambda: None)
    wait_until(lambda: str(watched.token) in watched.pods.health_error, "the file")


@pytest.mark.slow
def test_an_unreachable_api_server_keeps_the_last_list(
    launch_control_plane: Launcher, node: str, tmp_path: Path
) -> None:
    plane = launch_control_plane(controllers=False)
    kube = Kube(plane.kubeconfig)
    watched = Watched(plane, node, tmp_path)
    watched.token.write_text(account(kube, "default"))
    allow(kube, "default")
    add_pod(kube, "default", "a", node)
    watched.pods.start(lambda: None)
    try:
        wait_until(watched.has("a"), "the list")
        plane.kill()
        wait_until(lambda: "the last list is kept" in watched.pods.health_error, "it is missed")
        assert watched.names == {"a"}
        plane.resume()
        add_pod(kube, "default", "b", node)
        wait_until(watched.has("a", "b"), "what came since")
        wait_until(lambda: watched.pods.health_error == "", "no trouble")
    finally:
        watched.pods.stop()


def test_the_pod_api_is_found_without_settings(
    control_plane: ControlPlane,
    kube: Kube,
    namespace: str,
    node: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The kubelet's variables and files are enough."""
    (tmp_path / "token").write_text(account(kube, namespace))
    (tmp_path / "ca.crt").write_bytes(control_plane.authority.read_bytes())
    allow(kube, namespace)
    add_pod(kube, namespace, "a", node)
    monkeypatch.setattr(api, "_SERVICE_ACCOUNT", tmp_path)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(control_plane.port))
    settings = CollectorSettings(node, "", pod_source="api")
    pods = ApiPods(partial(access_of, settings), node)
    pods.start(lambda: None)
    try:
        wait_until(lambda: [pod.name for pod in pods.index.pods] == ["a"], "the list")
    finally:
        pods.stop()


class TestCgroups:
    """Cgroups named as the kubelet names them, for pods of the API server."""

    pytestmark = [*NEEDED, pytest.mark.timeout(120)]

    def test_work_in_the_cgroup_of_a_pod_is_attributed_to_the_pod(
        self, watched: Watched, kube: Kube, namespace: str, node: str, tmp_path: Path
    ) -> None:
        watched.token.write_text(account(kube, namespace))
        allow(kube, namespace)
        busy, own = (spec(kube, namespace, name, node) for name in ("train-0", "collector-x"))
        pod = f"{namespace}/train-0"

        def is_attributed(found: Recorded) -> bool:
            return pod in found.subjects() and found.total(f"{USAGE}{{{pod}}}") > 0.2e9

        worker = work(busy, "cpu", 60.0)
        try:
            record(watched.settings, own, tmp_path / "r", is_attributed)
        finally:
            worker.kill()
            worker.wait()
            remove_all(busy, own)
        observed = Recorded(tmp_path / "r")
        table = observed.subjects()
        who = table[pod]
        assert (who.uid, who.container, who.qos) == (busy.uid, "worker", "BestEffort")
        assert observed.total(f"{USAGE}{{{pod}}}") > 0.2e9
        # what the collector itself uses is reported as its own, not as a subject's
        assert f"{namespace}/collector-x" not in table
        assert not any(own.uid in instance for instance in table)
        assert observed.total("own.cpu_time") > 0


def spec(kube: Kube, namespace: str, name: str, node: str) -> PodSpec:
    """A pod of the API server whose container runs, as its kubelet would say."""
    pod = add_pod(kube, namespace, name, node)
    created = PodSpec(
        name, pod["metadata"]["uid"], (Container("worker", 0),), namespace, qos="BestEffort"
    )
    status = {
        "name": "worker", "image": "none", "imageID": "", "ready": True, "restartCount": 0,
        "containerID": f"containerd://{created.containers[0].id(created.uid)}",
    }  # fmt: skip
    kube.patch(pod, {"status": {"phase": "Running", "containerStatuses": [status]}}, "status")
    return created


def record(
    settings: CollectorSettings, own: PodSpec, file: Path, until: Callable[[Recorded], bool]
) -> None:
    """Record a collector in a pod, whose identity its environment names, up to a condition."""
    flags: list[Any] = [
        "--pod-source", "api", "--pod-api", settings.pod_api, "--pod-token-file",
        settings.pod_token_file, "--pod-ca-file", settings.pod_ca_file, "--record", file,
        "--include", "stat", "cgroup-cpu", "cgroups",
    ]  # fmt: skip
    join = "".join(f"echo $$ > {folder}/cgroup.procs; " for folder in make(own))
    command = ["sh", "-c", join + 'exec "$@"', "sh", sys.executable, "-m", "reveal_collector"]
    environment = {
        NODE_VARIABLE: settings.node, POD_VARIABLE: own.name, NAMESPACE_VARIABLE: own.namespace,
    }  # fmt: skip
    set_there = [f"{name}={value}" for name, value in environment.items()]
    process = subprocess.Popen(["env", *set_there, *command, *map(str, flags)])
    try:
        wait_until(
            lambda: file.exists() and file.stat().st_size > len(MAGIC) and until(Recorded(file))
        )
    finally:
        process.terminate()
        assert process.wait(20) == 0
