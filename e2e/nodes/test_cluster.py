"""``make cluster`` is a real Kubernetes: pods, logs, services, DNS, rights, and nodes that fail."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from support.api_server import wait_for
from support.node_network import NodeNetwork

pytestmark = pytest.mark.timeout(300)

_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_ASK = (
    f'curl -sS -m 5 -o /dev/null -w "%{{http_code}}" --cacert {_ACCOUNT}/ca.crt'
    f' -H "Authorization: Bearer $(cat {_ACCOUNT}/token)"'
    " https://kubernetes.default.svc.cluster.local/api/v1/namespaces/"
)


def test_every_node_runs_its_pods(stage: NodeNetwork) -> None:
    assert {stage.node_ready(name) for name in stage.cluster.nodes} == {"True"}
    for app in ("web", "agent"):
        assert sorted(stage.pods(app)) == stage.cluster.nodes


def test_logs_and_exec(stage: NodeNetwork) -> None:
    for pod in stage.pods("web").values():
        name = pod["metadata"]["name"]
        assert stage.shell(name, "cat /etc/hostname").strip() == name
        assert "/hostname" in stage.cluster.kubectl("-n", stage.namespace, "logs", name)


def test_pods_reach_pods_of_all_nodes_and_services_by_address_and_name(stage: NodeNetwork) -> None:
    names = {pod["metadata"]["name"]: pod["status"]["podIP"] for pod in stage.pods("web").values()}
    service = stage.kube.get("v1", "Service", "web", stage.namespace)
    assert service is not None
    by_name = f"web.{stage.namespace}.svc.cluster.local"
    for pod in names:
        for other, address in names.items():
            assert stage.shell(pod, _get(f"{address}:8080")).strip() == other
        for where in (service["spec"]["clusterIP"], by_name):
            assert stage.shell(pod, _get(where)).strip() in names


def test_the_host_of_a_privileged_pod_is_its_node(stage: NodeNetwork) -> None:
    for node, pod in stage.pods("agent").items():
        name = pod["metadata"]["name"]
        assert "cluster.inside" in stage.shell(name, "tr '\\0' ' ' </host/proc/1/cmdline")
        tree = stage.shell(name, "find /host/sys/fs/cgroup -maxdepth 3 -name 'kubepods*'")
        assert tree.strip()
        assert stage.cluster.execute(node, "hostname").strip() == node


def test_a_token_has_the_rights_of_its_role(stage: NodeNetwork) -> None:
    pod = next(iter(stage.pods("agent").values()))["metadata"]["name"]
    assert stage.shell(pod, f"{_ASK}{stage.namespace}/pods") == "200"
    assert stage.shell(pod, f"{_ASK}{stage.namespace}/secrets") == "403"


def test_a_partition_is_detected_and_heals(stage: NodeNetwork) -> None:
    here, there = (stage.pods("web")[name] for name in ("node1", "node3"))
    asked = _get(f"{there['status']['podIP']}:8080")
    stage.cluster.disconnect("node3")
    try:
        with pytest.raises(subprocess.CalledProcessError):
            stage.shell(here["metadata"]["name"], asked)
    finally:
        stage.cluster.join("node3")
    wait_for(lambda: _answers(stage, here["metadata"]["name"], asked), 60, "it is reached again")


def test_a_node_restarts_with_its_pods_after_a_power_loss(stage: NodeNetwork) -> None:
    stage.cluster.kill("node2")
    wait_for(lambda: stage.node_ready("node2") != "True", 120, "the node is missed")
    began = time.monotonic()
    stage.cluster.start("node2")
    wait_for(lambda: stage.node_ready("node2") == "True", 60, "the node is back")
    print(f"\nReady {time.monotonic() - began:.1f} s after its power was")
    rolled_out = ("rollout", "status", "daemonset/agent", "--timeout=90s")
    stage.cluster.kubectl("-n", stage.namespace, *rolled_out)
    name = stage.pods("agent")["node2"]["metadata"]["name"]
    wait_for(lambda: _answers(stage, name, "true"), 60, "its pod answers")


def test_an_image_is_imported(stage: NodeNetwork) -> None:
    image = stage.cluster.image("reveal-redis")
    archive = next(file for file, item in stage.cluster.state["images"].items() if item == image)
    stage.cluster.import_image("node1", Path(archive))
    assert image in stage.cluster.execute("node1", "ctr", "-n", "k8s.io", "images", "ls", "-q")


def _get(where: str) -> str:
    return f"curl -fsS -m 5 http://{where}/hostname"


def _answers(stage: NodeNetwork, pod: str, text: str) -> bool:
    try:
        stage.shell(pod, text)
    except subprocess.CalledProcessError:
        return False
    return True
