"""A node of the cluster: namespaces of its own, with containerd, kubelet and kube-proxy in them.

Its disk is a folder; its power is process 1 of its PID namespace, with which all else in it ends.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from cluster import cgroups, inside, network, nodefiles
from cluster.daemons import Daemon, StartError
from cluster.inside import Inside
from cluster.network import Network
from cluster.nodefiles import Setting
from cluster.plane import ControlPlane

_E2E = Path(__file__).parents[1]
_START_S = 10.0
_POLITE_S = 3.0
_LOAD_S = 180.0
_NAMESPACES = ("-m", "-u", "-i", "-n", "-p", "-C")


class Node:
    """A machine that can be switched on, have its plug or its cable pulled, and be looked into."""

    patience = 180.0

    def __init__(self, plane: ControlPlane, name: str, archives: tuple[Path, ...]) -> None:
        self.number = network.number(name)
        self.name = name
        self.folder = plane.folder / "nodes" / self.name
        self._network: Network = plane.options.network
        self._plane = plane
        self.archives = archives
        self._unshare = Daemon(
            self.name, (sys.executable, "-m", "cluster.inside", "enter", self._settings_file),
            plane.folder / f"{self.name}.log", {"PYTHONPATH": str(_E2E)},
        )  # fmt: skip
        self.pid = 0

    @property
    def _settings_file(self) -> Path:
        return self.folder / "inside.json"

    def start(self) -> None:
        """Switch it on; what was on its disk is there again."""
        if self._unshare.running:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        self._write()
        self._unshare.start()
        self.pid = self._first()
        network.plug(self._network, self.number, self.pid)

    def kill(self) -> list[Path]:
        """Cut its power, without a shutdown. Return the cgroups that are left, normally none."""
        self.unplug_power()
        network.unplug(self._network, self.number)
        return cgroups.remove(inside.cgroup(self.name))

    def unplug_power(self) -> None:
        """Everything in it ends; cable and cgroups stay."""
        self._unshare.kill()
        self.pid = 0

    def shut_down(self) -> None:
        """Everything in it is asked to end."""
        if self.running:
            command = entering(self.pid, ("kill", "-TERM", "-1"))
            subprocess.run(command, check=False, capture_output=True)
            time.sleep(_POLITE_S)
        self.kill()

    def load(self, archive: Path) -> None:
        """Import an image."""
        if self.running:
            execute(self.pid, *inside.importing(archive), seconds=_LOAD_S)
            execute(self.pid, "touch", inside.imported(archive))  # else it is when it starts again

    @property
    def running(self) -> bool:
        return self._unshare.running

    def _write(self) -> None:
        files = self._plane.certificates
        user = files.issue(f"{self.name}-kubelet", f"/O=system:nodes/CN=system:node:{self.name}")
        self._config("kubelet", user)
        self._config("proxy", files.issue("kube-proxy", "/CN=system:kube-proxy"))
        files.issue_server(self.name, f"DNS:{self.name}", f"IP:{self._network.node(self.number)}")
        setting = Setting(
            self.name, self.number, self._network, self.folder,
            files.authority, files.certificate(self.name), files.key(self.name),
        )  # fmt: skip
        nodefiles.write(self.folder, setting)
        programs = {name: str(self._plane.programs[name]) for name in ("kubelet", "kube-proxy")}
        archives = tuple(map(str, self.archives))
        Inside(self.folder, self.number, self._network, programs, archives).save(
            self._settings_file
        )

    def _config(self, name: str, user: dict[str, str]) -> None:
        kubeconfig = self._plane.config(f"{self.name}-{name}", user)
        kubeconfig.replace(self.folder / f"{name}.kubeconfig")

    def _first(self) -> int:
        """The process id of the node's process 1, once its namespaces are there."""
        deadline = time.monotonic() + _START_S
        while time.monotonic() < deadline and self._unshare.running:
            for child in _children(self._unshare.pid):
                with contextlib.suppress(OSError):
                    if _namespace(child, "net") != _namespace(os.getpid(), "net"):
                        return child
            time.sleep(0.03)
        raise StartError(f"{self.name} did not start; its log ends:\n{self._unshare.tail()}")


def entering(pid: int, command: Sequence[str | Path]) -> list[str]:
    """A command line that runs ``command`` in the namespaces of a node's process 1."""
    return ["nsenter", "-t", str(pid), *_NAMESPACES, "--", *map(str, command)]


def execute(pid: int, *command: str | Path, seconds: float = 60.0) -> str:
    """What a command prints in a node; ``CalledProcessError`` when it fails."""
    return subprocess.run(
        entering(pid, command), check=True, capture_output=True, text=True, timeout=seconds
    ).stdout


def _children(pid: int) -> list[int]:
    """``setpriv`` and the launcher become ``unshare`` itself, whose only child is process 1."""
    try:
        return [int(item) for item in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _namespace(pid: int, kind: str) -> str:
    return str(Path(f"/proc/{pid}/ns/{kind}").readlink())
