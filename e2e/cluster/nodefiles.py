"""What the programs of one node are told: kubelet, kube-proxy, containerd, pod network."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cluster import machine
from cluster.certificates import Certificates
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
        SystemdCgroup = false
        BinaryName = "{runc}"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{plugins}"
    conf_dir = "{cni}"
"""


def write(folder: Path, network: Network, number: int, made: Certificates) -> None:
    """Everything but the kubeconfigs, into the node's folder."""
    name = folder.name
    (folder / "resolv.conf").write_text("")  # pods ask the cluster's DNS, which asks nobody
    cni = folder / "cni"
    cni.mkdir(exist_ok=True)
    (cni / "10-pods.conflist").write_text(json.dumps(_pods(network, number)))
    kubelet = _kubelet(folder, network.node(number), network.dns, made)
    (folder / "kubelet.json").write_text(json.dumps(kubelet))
    (folder / "proxy.json").write_text(json.dumps(_proxy(folder, network, number, name)))
    (folder / "containerd.toml").write_text(_containerd(cni))


def _containerd(cni: Path) -> str:
    """Without CAP_SYS_RESOURCE the score of a pause container (-998) must be clamped."""
    free = machine.may_raise_limits()
    return _CONTAINERD.format(
        restricted="false" if free else "true", runc="runc" if free else _RUNC,
        pause=PAUSE, plugins=machine.CNI_PLUGINS, cni=cni,
    )  # fmt: skip


def _kubelet(folder: Path, address: str, dns: str, made: Certificates) -> dict[str, Any]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": address,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(made.authority)},
        },
        "authorization": {"mode": "Webhook"},
        "cgroupDriver": "cgroupfs",
        "failCgroupV1": False,
        "failSwapOn": False,
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "tlsCertFile": str(made.certificate(folder.name)),
        "tlsPrivateKeyFile": str(made.key(folder.name)),
        "clusterDomain": "cluster.local",
        "clusterDNS": [dns],
        "resolvConf": str(folder / "resolv.conf"),
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


def _proxy(folder: Path, network: Network, number: int, name: str) -> dict[str, Any]:
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "clientConnection": {"kubeconfig": str(folder / "proxy.kubeconfig")},
        "clusterCIDR": f"{network.pods}.0.0/16",
        "hostnameOverride": name,
        "bindAddress": network.node(number),
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
