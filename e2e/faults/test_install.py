"""From ``helm install`` and the smallest profile to nodes that are watched, and nothing found."""

from __future__ import annotations

import time

import pytest

from reveal_contract.kube.names import LABEL_PROFILE
from support.api_server import wait_for
from support.cluster_release import Release
from support.fault_run import healthy_run
from support.helm_chart import NAMESPACE

pytestmark = pytest.mark.timeout(900)
IDLE_S = 60.0


def test_each_gpu_node_has_a_collector_that_reports(three_nodes: Release) -> None:
    # one of ten may be missing while the profile is Ready, as in a roll-out
    wait_for(lambda: three_nodes.profile["status"]["readyNodes"] == 3, 60, "all of them")
    assert three_nodes.profile["status"]["desiredNodes"] == 3
    pods = three_nodes.kube.items("v1", "Pod", NAMESPACE, f"{LABEL_PROFILE}=gpu-nodes")
    collectors = [pod for pod in pods if pod["spec"].get("hostPID")]
    assert (
        sorted(collector["spec"]["nodeName"] for collector in collectors)
        == three_nodes.cluster.nodes
    )
    assert three_nodes.telemetry["streamReachable"] is True


def test_nothing_is_found_on_idle_nodes(three_nodes: Release) -> None:
    with healthy_run("idle nodes", three_nodes):
        time.sleep(IDLE_S)
