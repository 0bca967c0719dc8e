"""What a machine must have to run nodes, and what nodes change of it."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

# program and the Debian package that it is of
_NEEDED = {
    "containerd": "containerd", "ctr": "containerd", "runc": "runc", "nft": "nftables",
    "conntrack": "conntrack", "iptables": "iptables", "ip": "iproute2", "nsenter": "util-linux",
    "unshare": "util-linux", "openssl": "openssl", "buildah": "buildah",
    "debootstrap": "debootstrap", "gcc": "gcc",
    "ethtool": "ethtool",  # of the tests of packet loss
}  # fmt: skip
_NEEDED_BY_VMS = {
    "qemu-system-x86_64": "qemu-system-x86", "mke2fs": "e2fsprogs", "ssh": "openssh-client",
}  # fmt: skip
CNI_PLUGINS = Path("/usr/lib/cni")
_SYS_RESOURCE = 24
# the kubelet writes these for the whole machine
_SETTINGS = ("vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops",
             "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes")  # fmt: skip


def missing(vms: int = 0) -> str:
    """Why this machine cannot run nodes, in a sentence; empty when it can."""
    if os.geteuid() != 0:
        return "nodes are made of namespaces, cgroups and mounts, which takes root"
    needed = {**_NEEDED, **(_NEEDED_BY_VMS if vms else {})}
    packages = {package for name, package in needed.items() if shutil.which(name) is None}
    if not (CNI_PLUGINS / "bridge").exists():
        packages.add("containernetworking-plugins")
    if packages:
        names = " ".join(sorted(packages))
        return f"nodes need more of this machine: apt-get install --no-install-recommends {names}"
    return ""


def may_raise_limits() -> bool:
    """Whether root has CAP_SYS_RESOURCE here, which containers often lack."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> _SYS_RESOURCE & 1)
    return False


def remember(file: Path) -> None:
    """Keep the settings that kubelets change; what an earlier run kept is the truth."""
    if not file.exists():
        paths = [Path("/proc/sys", name) for name in _SETTINGS]
        file.write_text(
            json.dumps({str(path): path.read_text() for path in paths if path.exists()})
        )


def restore(file: Path) -> None:
    """Put back what ``remember`` kept."""
    if file.exists():
        for path, text in json.loads(file.read_text()).items():
            if Path(path).read_text() != text:
                Path(path).write_text(text)
        file.unlink()
