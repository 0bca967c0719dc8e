"""A node that is a virtual machine is a node like others, with a kernel of its own."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from cluster import network
from cluster.handle import Cluster
from cluster.network import BRIDGED
from support.api_server import Kube, condition, wait_for
from support.cluster_release import Release
from support.faulty_pods import SPIN

pytestmark = pytest.mark.timeout(900)
_BACK_S = 300.0
_SERVE = ["python3", "-m", "http.server", "8080", "--directory", "/etc"]


def test_the_node_has_its_own_kernel_and_cgroup_v2(cluster: Cluster, vm: str) -> None:
    node = Kube(cluster.kubeconfig).get("v1", "Node", vm) or {}
    assert condition(node, "Ready")["status"] == "True"
    assert node["status"]["nodeInfo"]["kernelVersion"] != os.uname().release
    assert cluster.execute(vm, "cat", "/proc/1/comm").strip() == "systemd"
    assert cluster.execute(vm, "stat", "-fc", "%T", "/sys/fs/cgroup").strip() == "cgroup2fs"


def test_pods_run_in_systemd_slices_and_scopes(release: Release, vm: str, jobs: str) -> None:
    container = {"command": ["python3", "-c", SPIN], "resources": {"requests": {"cpu": "100m"}}}
    with release.pod(jobs, vm, "burstable", **container):
        pod = release.kube.get("v1", "Pod", "burstable", jobs) or {}
        uid = pod["metadata"]["uid"].replace("-", "_")
        [status] = pod["status"]["containerStatuses"]
        number = status["containerID"].removeprefix("containerd://")
        path = (
            f"kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{uid}.slice"
            f"/cri-containerd-{number}.scope"
        )
        used = release.cluster.execute(vm, "cat", f"/sys/fs/cgroup/{path}/cpu.stat")
        assert "usage_usec" in used


def test_its_pods_communicate_with_pods_of_other_nodes(
    release: Release, vm: str, jobs: str
) -> None:
    with (
        release.pod(jobs, vm, "there", command=_SERVE),
        release.pod(jobs, release.cluster.nodes[0], "here", command=_SERVE),
    ):
        for asking, asked in (("here", "there"), ("there", "here")):
            address = (release.kube.get("v1", "Pod", asked, jobs) or {})["status"]["podIP"]
            command = ("curl", "-fsS", "-m", "10", "--retry", "5", "--retry-connrefused")
            url = f"http://{address}:8080/hostname"
            output = release.cluster.kubectl("-n", jobs, "exec", asking, "--", *command, url)
            assert output.strip() == asked


def test_the_node_restarts_after_a_power_loss(cluster: Cluster, vm: str) -> None:
    """Nothing of it is left on this machine meanwhile."""
    kube = Kube(cluster.kubeconfig)
    cable = Path("/sys/class/net", BRIDGED.plug(network.number(vm)))
    process = Path("/proc", str(cluster.state["vms"][vm]))
    assert cable.exists()
    assert "qemu" in (process / "comm").read_text()
    before = (kube.get("v1", "Node", vm) or {})["status"]["nodeInfo"]["bootID"]
    cluster.kill(vm)
    assert not cable.exists()
    assert not process.exists()
    began = time.monotonic()
    cluster.start(vm)
    wait_for(lambda: _boot(kube, vm) not in ("", before), _BACK_S, "another boot is Ready")
    print(f"\nReady {time.monotonic() - began:.1f} s after its power was back")


def _boot(kube: Kube, name: str) -> str:
    """The id of its boot; empty while it is not Ready."""
    node = kube.get("v1", "Node", name) or {}
    ready = condition(node, "Ready").get("status") == "True"
    return str(node["status"]["nodeInfo"]["bootID"]) if ready else ""
