"""Hosts that run pods: what cgroup trees of each version, runtime and driver look like."""

from __future__ import annotations

import json
from itertools import product

from support.hosts.base import add_base
from support.hosts.cgroups import HYBRID, V1, V2, Container, Layout, PodSpec, add_cgroups, pod_list
from support.hosts.tree import Tree

POD_LIST = "pods.json"
_UID = "{:08x}-5d1b-4a4e-9f39-2f6f4b1c0a77"
_KIND_NODE = "/system.slice/docker-" + "5e" * 32 + ".scope"
TRAINING = PodSpec(
    "trainer-0", _UID.format(1), (Container("worker", 4100, 1.5, 3 << 30),
                                  Container("sidecar", 4200, 0.05)),
    namespace="ml", qos="Guaranteed", owner=("Job", "trainer"), netns=4_026_532_001,
    rx_rate=4_000_000,
)  # fmt: skip
INFERENCE = PodSpec(
    "serve-7c9d",
    _UID.format(2),
    (Container("server", 5100, 0.6, 1 << 30),),
    namespace="ml",
    owner=("ReplicaSet", "serve-7c"),
    netns=4_026_532_002,
)
AGENT = PodSpec(
    "node-agent-x2x",
    _UID.format(3),
    (Container("agent", 6100, 0.02),),
    namespace="kube-system",
    qos="BestEffort",
    owner=("DaemonSet", "node-agent"),
    host_network=True,
)
STATIC = PodSpec(
    "kube-proxy-node",
    "0c" * 16,
    (Container("proxy", 7100, 0.01),),
    namespace="kube-system",
    host_network=True,
    static=True,
)
PODS = (TRAINING, INFERENCE, AGENT, STATIC)
UNITS = {"/system.slice/sshd.service": (0.01, 900), "/system.slice/kubelet.service": (0.2, 910)}

LAYOUTS = {
    f"{version}_{name}": Layout(version, runtime, driver, nested)
    for version, (name, runtime, driver, nested) in product(
        (V1, V2, HYBRID),
        (
            ("containerd_cgroupfs", "containerd", "cgroupfs", ""),
            ("containerd_systemd", "containerd", "systemd", ""),
            ("crio", "crio", "systemd", ""),
            ("cri_dockerd", "docker", "systemd", ""),
            ("nested", "containerd", "systemd", _KIND_NODE),
        ),
    )
}


def add_pods(tree: Tree, layout: Layout, pods: tuple[PodSpec, ...] = PODS) -> None:
    """The pods with units beside them, and the list of pods that the API would give."""
    add_cgroups(tree, layout, pods, UNITS)
    tree.write(POD_LIST, json.dumps(pod_list(pods, "made-up", layout.runtime)))


def host_with_pods(tree: Tree, layout: Layout) -> None:
    """A plain machine with these pods."""
    add_base(tree)
    add_pods(tree, layout)
