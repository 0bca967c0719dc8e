"""Configuration of the programs of one node: kubelet, kube-proxy, containerd, pod network."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster import machine
from cluster.network import Network

PAUSE = "registry.k8s.io/pause:3.10"
_RUNC = Path(__file__).with_name("runc-without-limits")
_CONTAINERD = """\
version = 2
[plugins."io.containerd.grpc.v1.cri"]
  restrict_oom_score_adj = {restricted}
  sandbox_image = "{pause}"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = {systemd}
        BinaryName = "{runc}"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{plugins}"
    conf_dir = "{cni}"
"""
# a machine of its own: small, slow where it is emulated, and, as nodes with GPUs often are, tainted
_APART: dict[str, Any] = {
    "cgroupDriver": "systemd",
    "systemReserved": {"memory": "256Mi"},
    "runtimeRequestTimeout": "10m",
    "registerWithTaints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}],
}


@dataclass(frozen=True)
class Setting:
    """A node as its programs know it; paths are those that it sees itself.

    ``shares_kernel``: it is a set of namespaces, and has no systemd to make its cgroups.
    """

    name: str
    number: int
    network: Network
    folder: Path
    authority: Path
    certificate: Path
    key: Path
    shares_kernel: bool = True

    @property
    def address(self) -> str:
        return self.network.node(self.number)


def write(into: Path, node: Setting) -> None:
    """Everything but the kubeconfigs; ``into`` is the folder of the setting as seen from here."""
    (into / "resolv.conf").write_text("")  # pods ask the cluster's DNS, which asks nobody
    cni = into / "cni"
    cni.mkdir(exist_ok=True)
    (cni / "10-pods.conflist").write_text(json.dumps(_pods(node.network, node.number)))
    kubelet = {**_kubelet(node), **({} if node.shares_kernel else _APART)}
    (into / "kubelet.json").write_text(json.dumps(kubelet))
    (into / "proxy.json").write_text(json.dumps(_proxy(node)))
    (into / "containerd.toml").write_text(_containerd(node))


def _containerd(node: Setting) -> str:
    """Without CAP_SYS_RESOURCE the score of a pause container (-998) must be clamped."""
    free = machine.may_raise_limits() or not node.shares_kernel
    return _CONTAINERD.format(
        restricted="false" if free else "true", runc="runc" if free else _RUNC,
        systemd="false" if node.shares_kernel else "true",
        pause=PAUSE, plugins=machine.CNI_PLUGINS, cni=node.folder / "cni",
    )  # fmt: skip


def _kubelet(node: Setting) -> dict[str, Any]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": node.address,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(node.authority)},
        },
        "authorization": {"mode": "Webhook"},
        "cgroupDriver": "cgroupfs",
        "failCgroupV1": False,
        "failSwapOn": False,
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "tlsCertFile": str(node.certificate),
        "tlsPrivateKeyFile": str(node.key),
        "clusterDomain": "cluster.local",
        "clusterDNS": [node.network.dns],
        "resolvConf": str(node.folder / "resolv.conf"),
        "evictionHard": {
            "memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%",
        },
        # no registry could give back an image that was collected
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "imageMaximumGCAge": "0s",
        "serializeImagePulls": False,
        "volumePluginDir": "/var/lib/kubelet/volumeplugins",
        "systemReserved": {"memory": "1Gi"},
    }  # fmt: skip


def _proxy(node: Setting) -> dict[str, Any]:
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "clientConnection": {"kubeconfig": str(node.folder / "proxy.kubeconfig")},
        "clusterCIDR": f"{node.network.pods}.0.0/16",
        "hostnameOverride": node.name,
        "bindAddress": node.address,
        "healthzBindAddress": "127.0.0.1:10256",
        "metricsBindAddress": "127.0.0.1:10249",
        # these are the whole machine's
        "conntrack": {
            "maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s",
        },
    }  # fmt: skip


def _pods(network: Network, number: int) -> dict[str, Any]:
    addresses = {
        "type": "host-local",
        "ranges": [[{"subnet": network.pods_of(number)}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    bridge = {
        "type": "bridge", "bridge": "cni0", "isGateway": True, "hairpinMode": True,
        "ipMasq": False, "ipam": addresses,
    }  # fmt: skip
    ports = {"type": "portmap", "capabilities": {"portMappings": True}, "snat": True}
    return {"cniVersion": "0.4.0", "name": "pods", "plugins": [bridge, ports]}
