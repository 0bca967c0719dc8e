"""Faults that a node tells by what is its own: cgroups, pressure and network namespaces.

Three nodes are watched and one of them is named. Nodes share a kernel, and what it counts for
the machine (/proc/stat, /proc/vmstat, disks, interrupts) is the same on each of them: faults
that are detected by those counters are in ``test_machine_faults.py``.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from cluster.handle import Cluster
from support.cluster_release import SINGLE_THREAD, TRAINING, Release
from support.fault_run import fault_run, throttled_run
from support.faulty_pods import LOG_TIME, SPIN, THROTTLED, Expected
from workloads import command

pytestmark = pytest.mark.timeout(900)

_IDLE_S = 120.0
_IDLE_PERCENT = 40.0
_STARTED_S = 25.0  # a job that starts is no finding, and its pod must be known by then
_PORT = "29500"
# one segment a packet, as on a wire: what is dropped would else be 64 KB at a time; and no loss
# probes, which where a round trip takes 0.1 ms go out whenever the other rank is woken late
_AS_ON_A_WIRE = (
    "for each in /run/netns/*; do nsenter --net=$each ethtool -K eth0 tso off gso off gro off;"
    " nsenter --net=$each sysctl -w net.ipv4.tcp_early_retrans=0; done;"
    " for each in $(ls /sys/class/net | grep ^veth) eth0;"
    " do ethtool -K $each tso off gso off gro off; done"
)


def test_a_pod_throttled_by_its_quota_is_reported(three_nodes: Release, jobs: str) -> None:
    with throttled_run("CPU quota of a pod", three_nodes, jobs, "node2") as story:
        story.start_in(jobs, THROTTLED)


def test_a_noisy_neighbour_of_a_training_pod_is_reported(three_nodes: Release, jobs: str) -> None:
    expected = Expected("node1", "CPU", "CPUContention", f"{jobs}/noisy")
    loops = f"{LOG_TIME}; for i in 1 2 3 4 5 6; do python3 -c '{SPIN}' & done; wait"
    # its requests weigh more than the training pod's, which has none
    container = {"command": ["sh", "-c", loops], "resources": {"requests": {"cpu": "1"}}}
    with (
        training(three_nodes, jobs, "node1"),
        fault_run("noisy neighbour of a training pod", three_nodes, expected) as story,
        three_nodes.pod(jobs, "node1", "noisy", **container),
    ):
        story.start_in(jobs, "noisy")


@pytest.mark.parametrize("per_mille", [10, 1])
def test_packet_loss_of_a_node_is_reported(three_nodes: Release, jobs: str, per_mille: int) -> None:
    """Two ranks train across two nodes, and what leaves one of them is lost at random."""
    expected = Expected("node2", "Network", "PacketLoss", f"{jobs}/rank-1", victim=True)
    name = f"packet loss of {per_mille / 10:g} % on a node"
    with (
        training_across(three_nodes, jobs),
        fault_run(name, three_nodes, expected) as story,
        loss(three_nodes.cluster, "node2", per_mille),
    ):
        story.start()


@contextmanager
def training(watched: Release, jobs: str, node: str) -> Iterator[None]:
    """The job of a pod that is known by now, on a machine where it need not wait."""
    _await_idle_machine()
    with watched.pod(jobs, node, "training", **TRAINING):
        time.sleep(_STARTED_S)
        yield


@contextmanager
def training_across(watched: Release, jobs: str) -> Iterator[None]:
    """A job of two pods on two nodes, which sum their gradients over TCP twenty times a second."""
    _await_idle_machine()
    with ExitStack() as stack:
        address: tuple[str, ...] = ()
        for rank, node in enumerate(("node1", "node2")):
            container = {"command": command("allreduce", _PORT, *address), "env": [SINGLE_THREAD]}
            stack.enter_context(watched.pod(jobs, node, f"rank-{rank}", **container))
            pod = watched.kube.get("v1", "Pod", f"rank-{rank}", jobs) or {}
            address = (pod["status"]["podIP"],)
        for node in ("node1", "node2"):
            watched.cluster.execute(node, "sh", "-c", _AS_ON_A_WIRE)
        time.sleep(_STARTED_S)
        yield


@contextmanager
def loss(cluster: Cluster, node: str, per_mille: int) -> Iterator[None]:
    """So many of a thousand packets that pods send off the node never leave it."""
    table = ("ip", "reveal_fault")
    chain = ("add", "chain", *table, "out", "{ type filter hook forward priority 0; }")
    rule = f"oifname eth0 ip protocol tcp numgen random mod 1000 < {per_mille} drop"
    cluster.execute(node, "nft", "add", "table", *table)
    try:
        cluster.execute(node, "nft", *chain)
        cluster.execute(node, "nft", "add", "rule", *table, "out", *rule.split())
        yield
    finally:
        cluster.execute(node, "nft", "delete", "table", *table)


def _await_idle_machine() -> None:
    """Work beside the cluster makes pods of all nodes wait: a fault before there is one."""
    deadline = time.monotonic() + _IDLE_S
    while (waiting := _waiting_percent()) > _IDLE_PERCENT:
        if time.monotonic() > deadline:
            pytest.skip(f"work beside the cluster keeps tasks waiting {waiting:.0f} % of the time")
        time.sleep(2)


def _waiting_percent() -> float:
    """Of the last ten seconds, how many somebody waited for a CPU."""
    some = Path("/proc/pressure/cpu").read_text().split()
    return float(some[1].removeprefix("avg10="))
