"""What Kubernetes' own controllers make of the children: which pods, on which nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from reveal_contract.kube.names import LABEL_COMPONENT
from reveal_operator.manifests import owned_manifests
from reveal_operator.spec import parse
from support.api_server import Kube, unique, wait_for
from support.profile_factory import DEFAULTS, container, profile

GPU_TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
OTHER_TAINT = {"key": "example.com/reserved", "effect": "NoSchedule"}
# name -> labels, taints
NODES: dict[str, tuple[dict[str, str], list[dict[str, str]]]] = {
    "gfd": ({"nvidia.com/gpu.present": "true"}, [GPU_TAINT]),
    "nfd": ({"feature.node.kubernetes.io/pci-0302_10de.present": "true"}, []),
    "reserved": ({"nvidia.com/gpu.present": "true"}, [OTHER_TAINT]),
    "plain": ({"example.com/pool": "cpu"}, []),
}
SECONDS = 30


@pytest.fixture
def nodes(kube: Kube) -> Iterator[dict[str, str]]:
    """Node objects without anybody behind them: short name -> name."""
    names = {short: unique(short) for short in NODES}
    for short, name in names.items():
        _add(kube, name, *NODES[short])
    yield names
    for name in names.values():
        kube.delete({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})


def _add(kube: Kube, name: str, labels: dict[str, str], taints: list[dict[str, str]]) -> None:
    """A node that says it is ready: a new one is tainted until then."""
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}
    kube.create(node)
    condition = {"type": "Ready", "status": "True", "reason": "Test"}
    kube.patch(node, {"status": {"conditions": [condition]}}, "status")
    kube.patch(node, {"spec": {"taints": taints}})


@pytest.fixture
def home(kube: Kube, namespace: str) -> str:
    """A namespace with the accounts that the chart makes."""
    for component in ("collector", "analyzer"):
        meta = {"name": f"reveal-{component}", "namespace": namespace}
        kube.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta})
    return namespace


def apply(kube: Kube, home: str, spec: dict[str, Any] | None = None) -> dict[str, dict[str, Any]]:
    desired = parse(profile(spec))
    manifests = [
        # no such profile is there: the garbage collector would take its owned_manifests
        {**manifest, "metadata": {**manifest["metadata"], "ownerReferences": []}}
        for manifest in owned_manifests(desired, replace(DEFAULTS, namespace=home))
    ]
    return {item["kind"]: item for item in kube.apply(manifests, manager="reveal-operator")}


def pods(kube: Kube, home: str, component: str) -> list[dict[str, Any]]:
    return kube.items("v1", "Pod", home, f"{LABEL_COMPONENT}={component}")


def node_of(pod: dict[str, Any]) -> str:
    """The node for which the DaemonSet's controller made it."""
    affinity = pod["spec"]["affinity"]["nodeAffinity"]
    (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    (field,) = term["matchFields"]
    name: str = field["values"][0]
    return name


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, {"gfd", "nfd"}),
        ({"nodeSelector": {"example.com/pool": "cpu"}}, {"plain"}),
        ({"tolerations": [{"operator": "Exists"}]}, {"gfd", "nfd", "reserved"}),
        ({"tolerations": []}, {"nfd"}),
    ],
)
def test_collectors_run_on_the_selected_nodes(
    kube: Kube, home: str, nodes: dict[str, str], spec: dict[str, Any], expected: set[str]
) -> None:
    apply(kube, home, spec)
    desired = {nodes[short] for short in expected}

    def arrived() -> bool:
        return {node_of(pod) for pod in pods(kube, home, "collector")} & {
            *nodes.values()
        } == desired

    assert wait_for(arrived, SECONDS, f"collectors on {sorted(expected)}")
    item = pods(kube, home, "collector")[0]["spec"]
    assert (item["hostPID"], item["hostNetwork"]) == (True, True)
    assert item["priorityClassName"] == "system-node-critical"
    assert item["priority"] == 2_000_001_000
    # what admission adds is the account's token, read-only as all else
    mounts = item["containers"][0]["volumeMounts"]
    assert [each["name"] for each in mounts if not each.get("readOnly")] == ["run"]


def test_changed_settings_are_a_new_revision_and_equal_settings_are_not(
    kube: Kube, home: str, nodes: dict[str, str]
) -> None:
    def generations(found: dict[str, dict[str, Any]]) -> list[int]:
        return [found[kind]["metadata"]["generation"] for kind in ("DaemonSet", "Deployment")]

    assert generations(apply(kube, home)) == [1, 1]
    assert generations(apply(kube, home)) == [1, 1]
    assert generations(apply(kube, home, {"collector": {"maxSubjects": 5}})) == [2, 1]
    assert generations(apply(kube, home, {"analyzer": {"sensitivity": "High"}})) == [3, 2]


def test_a_change_of_privilege_removes_the_former_fields(kube: Kube, home: str) -> None:
    """Fields left out of an apply are taken back: no capability stays beside ``privileged``."""
    for privilege in ("Capabilities", "Privileged", "Capabilities"):
        applied = apply(kube, home, {"collector": {"privilege": privilege}})["DaemonSet"]
        context = container(applied)["securityContext"]
        assert context["privileged"] == (privilege == "Privileged")
        assert ("capabilities" in context) == (privilege == "Capabilities")
        assert ("seLinuxOptions" in context) == (privilege == "Capabilities")


def test_replicas_and_disruption_budgets_follow_the_profile(kube: Kube, home: str) -> None:
    assert "PodDisruptionBudget" in apply(kube, home, {"analyzer": {"replicas": 3}})
    assert wait_for(lambda: len(pods(kube, home, "analyzer")) == 3, SECONDS, "three analyzers")
    names = {pod["metadata"]["name"] for pod in pods(kube, home, "analyzer")}
    apply(kube, home, {"analyzer": {"replicas": 1}})
    assert wait_for(lambda: len(pods(kube, home, "analyzer")) == 1, SECONDS, "one analyzer")
    assert {pod["metadata"]["name"] for pod in pods(kube, home, "analyzer")} <= names
