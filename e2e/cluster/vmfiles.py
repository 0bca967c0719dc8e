"""The configuration disk of a virtual machine, which it mounts at ``/node-config``."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from cluster import nodefiles
from cluster.certificates import Certificates
from cluster.network import NUMBERS, Network
from cluster.nodefiles import Setting

NODE_CONFIG = Path("/node-config")
LABEL = "reveal-config"
_ROOM = 64 << 20
_LINK = """\
[Match]
Name=eth0
[Network]
Address={address}/24
Gateway={gateway}
"""
_ROUTE = """\
[Route]
Destination={pods}
Gateway={node}
"""
_KEYS = ("host-key", "login-key")


def keys(folder: Path, address: str) -> None:
    """How the node proves itself, and how whoever runs commands on it does."""
    for name in _KEYS:
        if not (folder / name).exists():
            command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name]
            subprocess.run([*command, "-f", str(folder / name)], check=True, capture_output=True)
    text = (folder / "host-key.pub").read_text()
    (folder / "known-hosts").write_text(f"{address} {text}")


def write(
    folder: Path, setting: Setting, certificates: Certificates, programs: Iterable[Path]
) -> Path:
    """Everything but kubeconfigs and archives, into the folder that becomes the disk."""
    into = folder / "node-config"
    (into / "bin").mkdir(parents=True, exist_ok=True)
    (into / "archives").mkdir(exist_ok=True)
    nodefiles.write(into, setting)
    (into / "eth0.network").write_text(links(setting.network, setting.number))
    (into / "environment").write_text(f"ADDRESS={setting.address}\n")
    shutil.copy2(certificates.authority, into / setting.authority.name)
    shutil.copy2(certificates.certificate(setting.name), into / setting.certificate.name)
    shutil.copy2(certificates.key(setting.name), into / setting.key.name)
    shutil.copy2(folder / "host-key", into / "host-key")
    shutil.copy2(folder / "login-key.pub", into / "authorized-keys")
    for program in programs:
        _link(program, into / "bin" / program.name)
    return into


def links(network: Network, number: int) -> str:
    """Its address, the way out and to the pods of other nodes (systemd.network(5))."""
    routes = "".join(
        _ROUTE.format(pods=network.pods_of(other), node=network.node(other))
        for other in NUMBERS
        if other != number
    )
    return _LINK.format(address=network.node(number), gateway=network.api) + routes


def disk(content: Path, archives: Iterable[Path], into: Path) -> None:
    """A file system of what is in ``content`` and of the images."""
    for archive in archives:
        _link(archive, content / "archives" / archive.name)
    size = sum(item.stat().st_size for item in content.rglob("*") if item.is_file())
    into.unlink(missing_ok=True)
    kib = (size + size // 10 + _ROOM) >> 10
    command = ["mke2fs", "-q", "-t", "ext4", "-L", LABEL, "-d", str(content), str(into), f"{kib}k"]
    subprocess.run(command, check=True, capture_output=True)
    shutil.rmtree(content)


def _link(file: Path, into: Path) -> None:
    """A copy takes seconds and room; it is only wanted where a link cannot be had."""
    into.unlink(missing_ok=True)
    try:
        into.hardlink_to(file)
    except OSError:
        shutil.copy2(file, into)
