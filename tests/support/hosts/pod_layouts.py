"""Three pods of a node, and the layouts of cgroups that container runtimes make for them."""

from __future__ import annotations

from support.hosts.cgroups import HYBRID, V1, V2, Container, Layout, PodSpec

TRAIN = PodSpec(
    "train-0", "1b2c3d4e-5f60-4718-8a9b-0c1d2e3f4a5b",
    (Container("worker", 100, 1.5), Container("sidecar", 110, 0.1)), "ml", "Guaranteed",
    ("StatefulSet", "train"), netns=4_026_532_100,
)  # fmt: skip
PROXY = PodSpec(
    "kube-proxy-x", "ffffffff-0000-4111-8222-333333333333", (Container("proxy", 200, 0.05),),
    "kube-system", owner=("DaemonSet", "kube-proxy"), host_network=True,
)  # fmt: skip
STATIC = PodSpec(
    "etcd-n1", "5d41402abc4b2a76b9719d911017c592", (Container("etcd", 300, 0.2),),
    "kube-system", "BestEffort", static=True, netns=4_026_532_200,
)  # fmt: skip
PODS = (TRAIN, PROXY, STATIC)
KIND = "/system.slice/docker-" + "c3" * 32 + ".scope"
LAYOUTS = [
    Layout(version, runtime, driver)
    for version in (V1, V2, HYBRID)
    for runtime, driver in (
        ("containerd", "systemd"), ("containerd", "cgroupfs"), ("crio", "systemd"),
        ("docker", "systemd"), ("docker", "cgroupfs"),
    )
] + [Layout(V2, "containerd", driver, KIND) for driver in ("systemd", "cgroupfs")]  # fmt: skip
