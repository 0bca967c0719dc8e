"""A node that is a virtual machine: a kernel, systemd and cgroups (version 2 alone) of its own.

To the cluster it is a node like those of ``nodes``; commands reach it through ssh. It has the
images that workloads and collectors need, and a taint that keeps everything else away.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import subprocess
import time
from pathlib import Path
from typing import IO

from cluster import emulator, network, rootfs, vmfiles
from cluster.daemons import Daemon
from cluster.emulator import Cable
from cluster.network import BRIDGED, Network
from cluster.nodefiles import Setting
from cluster.plane import ControlPlane
from cluster.vmfiles import NODE_CONFIG

_PREFIX = "vm"
_NEEDED = ("pause-", "reveal-collector-", "reveal-workload-")
_POLITE_S = 60.0
_LOAD_S = 300.0
_MAC = "52:54:00:00:00:{:02x}"


class Vm:
    """Its disk lives in its folder, its power is qemu, its cable a tap interface."""

    # emulated, its first start is most of all the import of images
    patience = 420.0

    def __init__(self, plane: ControlPlane, name: str, archives: tuple[Path, ...]) -> None:
        self.name = name
        self.number = network.number(name)
        self.folder = plane.folder / "nodes" / name
        self.archives = archives
        self._plane = plane
        self._network: Network = plane.options.network
        self._log = plane.folder / f"{name}.log"
        self._qemu: Daemon | None = None

    def start(self) -> None:
        """Switch it on; what was on its disk is there again."""
        if self.running:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        system, disk, settings_disk = (
            rootfs.find(),
            self.folder / "root.img",
            self.folder / "node-config.img",
        )
        if not disk.exists():
            _copy(system.disk, disk)
        vmfiles.disk(self._write(), filter(needed, self.archives), settings_disk)
        network.plug_tap(self._network, self.number)
        cable = Cable(self._network.plug(self.number), _MAC.format(self.number))
        command = emulator.command(system, (disk, settings_disk), cable, self.name)
        self._qemu = Daemon(self.name, command, self._log)
        self._qemu.start()

    def kill(self) -> list[Path]:
        """Cut its power, without a shutdown; nothing of it is left on this machine."""
        self.unplug_power()
        network.unplug(self._network, self.number)
        return []

    def unplug_power(self) -> None:
        if self._qemu is not None:
            self._qemu.kill()

    def shut_down(self) -> None:
        """As its power button does."""
        if self.running:
            with contextlib.suppress(subprocess.SubprocessError):
                execute(self.folder, "systemctl", "poweroff", "--no-block")
            deadline = time.monotonic() + _POLITE_S
            while self.running and time.monotonic() < deadline:
                time.sleep(0.1)
        self.kill()

    def load(self, archive: Path) -> None:
        """Import an image, unless it is none of those that are needed here."""
        if not needed(archive):
            return
        with archive.open("rb") as content:
            importing = ("ctr", "-n", "k8s.io", "images", "import", "--all-platforms", "-")
            execute(self.folder, *importing, seconds=_LOAD_S, given=content)

    @property
    def running(self) -> bool:
        return self._qemu is not None and self._qemu.running

    @property
    def pid(self) -> int:
        return self._qemu.pid if self._qemu is not None else 0

    def _write(self) -> Path:
        plane, files, name = self._plane, self._plane.certificates, self.name
        address = self._network.node(self.number)
        files.issue_server(name, f"DNS:{name}", f"IP:{address}")
        vmfiles.keys(self.folder, address)
        setting = Setting(
            name, self.number, self._network, NODE_CONFIG,
            NODE_CONFIG / files.authority.name, NODE_CONFIG / files.certificate(name).name,
            NODE_CONFIG / files.key(name).name, shares_kernel=False,
        )  # fmt: skip
        programs = (plane.programs["kubelet"], plane.programs["kube-proxy"])
        into = vmfiles.write(self.folder, setting, files, programs)
        users = {
            "kubelet": files.issue(f"{name}-kubelet", f"/O=system:nodes/CN=system:node:{name}"),
            "proxy": files.issue("kube-proxy", "/CN=system:kube-proxy"),
        }
        for component, user in users.items():
            shutil.move(plane.config(f"{name}-{component}", user), into / f"{component}.kubeconfig")
        return into


def is_virtual(name: str) -> bool:
    """Whether a node of that name is a virtual machine."""
    return name.startswith(_PREFIX)


def needed(archive: Path) -> bool:
    """Whether a virtual machine wants the image of an archive."""
    return archive.name.startswith(_NEEDED)


def execute(
    folder: Path, *command: str | Path, seconds: float = 60.0, given: IO[bytes] | None = None
) -> str:
    """What a command prints on the machine of that folder; it must not fail."""
    address = BRIDGED.node(network.number(folder.name))
    ssh = (
        "ssh", "-F", os.devnull, "-i", folder / "login-key", "-o", "BatchMode=yes",
        "-o", f"UserKnownHostsFile={folder / 'known-hosts'}", "-o", "ConnectTimeout=20",
        f"root@{address}", "--", shlex.join(map(str, command)),
    )  # fmt: skip
    return subprocess.run(
        list(map(str, ssh)), check=True, capture_output=True, text=True,
        timeout=seconds, stdin=given or subprocess.DEVNULL,
    ).stdout  # fmt: skip


def _copy(disk: Path, into: Path) -> None:
    """Without what nobody wrote."""
    unfinished = into.with_suffix(".unfinished")
    command = ["cp", "--sparse=always", "--reflink=auto", str(disk), str(unfinished)]
    subprocess.run(command, check=True, capture_output=True)
    unfinished.replace(into)
