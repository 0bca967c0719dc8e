"""The sweep of node conditions on a real API server: what it removes and what it leaves."""

from __future__ import annotations

from cluster.plane import ControlPlane
from reveal_contract.finding import Severity
from reveal_contract.kube import names
from reveal_contract.kube.anomaly_report import report
from reveal_operator.kube import connect
from reveal_operator.node_conditions import NodeConditionSweep
from support.api_server import Kube, unique
from support.api_server_sink import DEFINITIONS
from support.finding_factory import finding

OURS = {"type": "RevealAnomaly", "status": "True", "reason": "CPUHigh", "message": "left"}
READY = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "well"}


def types(kube: Kube, node: str) -> set[str]:
    found = kube.get("v1", "Node", node)
    assert found is not None
    return {each["type"] for each in found["status"]["conditions"]}


def test_conditions_of_a_deleted_profile_are_removed_and_no_others(
    control_plane: ControlPlane, kube: Kube
) -> None:
    kube.install(*DEFINITIONS)
    kept, left, profile = unique("kept"), unique("left"), unique("p")
    for name in (kept, left):
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
        kube.create(node)
        kube.patch(node, {"status": {"conditions": [READY, OURS]}}, "status")
    kube.create({
        "apiVersion": names.API_VERSION, "kind": names.PROFILE_KIND,
        "metadata": {"name": profile}, "spec": {"reporting": {"nodeConditions": True}},
    })  # fmt: skip
    for node_name, owner in ((kept, profile), (left, unique("deleted"))):
        found = report(finding(node_name=node_name, severity=Severity.HIGH), owner, 1)
        created = kube.create(found.to_create())
        kube.patch(created, {"status": found.status}, "status")
    api = connect(control_plane.kubeconfig)
    sweep = NodeConditionSweep(api)
    sweep.check()
    assert types(kube, left) == {"Ready", "RevealAnomaly"}, "one look is not enough"
    sweep.check()
    assert types(kube, left) == {"Ready"}
    assert types(kube, kept) == {"Ready", "RevealAnomaly"}
    api.remove_node_condition(unique("gone"))  # a node that was deleted meanwhile
