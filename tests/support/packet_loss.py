"""Two pods that train together across two nodes, and packets between them that are lost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from cluster.handle import Cluster
from support.api_server import Object
from support.cluster_release import SINGLE_THREAD, Release
from support.faulty_pods import Expected
from workloads import command

_PORT = "29500"
# one segment a packet, as on a wire: what is dropped would else be 64 KB at a time; and no loss
# probes, which where a round trip takes 0.1 ms go out whenever the other rank is woken late
_AS_ON_A_WIRE = (
    "for each in /run/netns/*; do nsenter --net=$each ethtool -K eth0 tso off gso off gro off;"
    " nsenter --net=$each sysctl -w net.ipv4.tcp_early_retrans=0; done;"
    " for each in $(ls /sys/class/net | grep ^veth) eth0;"
    " do ethtool -K $each tso off gso off gro off; done"
)


def packet_loss(node: str, namespace: str) -> Expected:
    """Return the expected report of packets of ``rank-1`` that do not leave its node."""
    return Expected(node, "Network", "PacketLoss", f"{namespace}/rank-1", victim=True)


@contextmanager
def ranks(watched: Release, namespace: str, nodes: tuple[str, str]) -> Iterator[None]:
    """Run ``rank-0`` and ``rank-1``, which sum their gradients over TCP twenty times a second."""
    with ExitStack() as stack:
        address: tuple[str, ...] = ()
        for rank, node in enumerate(nodes):
            container: Object = {
                "command": command("allreduce", _PORT, *address),
                "env": [SINGLE_THREAD],
            }
            stack.enter_context(watched.pod(namespace, node, f"rank-{rank}", **container))
            pod = watched.kube.get("v1", "Pod", f"rank-{rank}", namespace) or {}
            address = (pod["status"]["podIP"],)
        for node in nodes:
            watched.cluster.execute(node, "sh", "-c", _AS_ON_A_WIRE)
        yield


@contextmanager
def loss(cluster: Cluster, node: str, per_mille: int) -> Iterator[None]:
    """Lose so many of a thousand packets that pods send off the node, at random."""
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
