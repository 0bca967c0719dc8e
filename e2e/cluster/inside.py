"""``python -m cluster.inside enter | first FILE``: the first processes of a node.

``enter`` goes into the node's cgroups and makes its namespaces, whose cgroup root is where it is at
that moment; ``first`` is process 1 in them: it mounts what is the node's own and keeps containerd,
kubelet and kube-proxy running, as a service manager would.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from cluster import cgroups, network
from cluster.network import Network

_NAMESPACES = ("--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup")
_OWN = ("var/lib", "var/log")
_IMPORTED = Path("/var/lib/imported")
_PATIENCE_S = 60.0
_RESTART_S = 1.0


@dataclass(frozen=True)
class Inside:
    """What a node's first process must know; passed as a file of JSON."""

    folder: Path
    number: int
    network: Network
    programs: dict[str, str]
    archives: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def commands(self) -> dict[str, list[str]]:
        kubelet, proxy = self.programs["kubelet"], self.programs["kube-proxy"]
        return {
            "containerd": ["containerd", "--config", str(self.folder / "containerd.toml")],
            "kubelet": [
                kubelet, f"--config={self.folder / 'kubelet.json'}",
                f"--kubeconfig={self.folder / 'kubelet.kubeconfig'}",
                f"--hostname-override={self.name}", f"--node-ip={self.network.node(self.number)}",
            ],
            "kube-proxy": [proxy, f"--config={self.folder / 'proxy.json'}"],
        }  # fmt: skip

    def save(self, file: Path) -> None:
        file.write_text(json.dumps({**asdict(self), "folder": str(self.folder)}))


def load(file: Path) -> Inside:
    values: dict[str, Any] = json.loads(file.read_text())
    inside = Inside(**values)
    return replace(
        inside, folder=Path(values["folder"]), network=Network(**values["network"]),
        archives=tuple(values["archives"]),
    )  # fmt: skip


def main() -> None:
    step, file = sys.argv[1], Path(sys.argv[2])
    if step == "enter":
        enter(file)
    else:
        First(load(file)).run()


def enter(file: Path) -> None:
    """Into the cgroups first, then the namespaces."""
    cgroups.enter(cgroups.make(cgroup(load(file).name)))
    again = (sys.executable, "-m", "cluster.inside", "first", str(file))
    # who ends unshare, ends the node
    flags = ("--fork", "--kill-child=KILL", "--mount-proc", "--propagation", "private")
    os.execvp("unshare", ("unshare", *_NAMESPACES, *flags, "--", *again))


def cgroup(node: str) -> str:
    """The name of a node's cgroups."""
    return f"reveal-{node}"


class First:
    """Process 1 of a node."""

    def __init__(self, settings: Inside) -> None:
        self._settings = settings
        self._running: dict[int, str] = {}

    def run(self) -> None:
        """Until it is killed: nothing else ends it."""
        socket.sethostname(self._settings.name)
        self._mount()
        self._connect()
        self._start("containerd")
        _wait_for(lambda: _run("ctr", "version", check=False) == 0, "containerd")
        self._import()
        self._start("kubelet")
        self._start("kube-proxy")
        while True:
            self._reap()

    def _mount(self) -> None:
        _run("mount", "-t", "sysfs", "sysfs", "/sys")
        for command in cgroups.mounts():
            _run(*command)
        cgroups.delegate()
        _run("mount", "-t", "tmpfs", "tmpfs", "/run")
        Path("/run/lock").mkdir()
        for name in _OWN:
            own = self._settings.folder / name
            own.mkdir(parents=True, exist_ok=True)
            _run("mount", "--bind", own, Path("/", name))
        _run("mount", "--make-rshared", "/")

    def _connect(self) -> None:
        _wait_for(lambda: network.ip("link", "show", "eth0", check=False) == 0, "its cable")
        network.configure(self._settings.network, self._settings.number)
        for name in ("net/ipv4/ip_forward", "net/bridge/bridge-nf-call-iptables"):
            setting = Path("/proc/sys", name)
            if setting.exists():
                setting.write_text("1")

    def _import(self) -> None:
        """Images as archives, each once for as long as the node's disk lives."""
        _IMPORTED.mkdir(exist_ok=True)
        for archive in map(Path, self._settings.archives):
            if not imported(archive).exists():
                _run(*importing(archive))
                imported(archive).touch()

    def _start(self, name: str) -> None:
        log = self._settings.folder / f"{name}.log"
        with log.open("ab") as output:
            started = subprocess.Popen(
                self._settings.commands[name], stdin=subprocess.DEVNULL,
                stdout=output, stderr=output,
                start_new_session=True,
            )  # fmt: skip
        self._running[started.pid] = name

    def _reap(self) -> None:
        """Orphans of the node are its first process' children, too."""
        pid, status = os.wait()
        if name := self._running.pop(pid, ""):
            print(f"{name} ended: {os.waitstatus_to_exitcode(status)}", flush=True)
            time.sleep(_RESTART_S)
            self._start(name)


def importing(archive: Path) -> tuple[str, ...]:
    """The command that puts an image into a node's containerd, where kubelets look."""
    return ("ctr", "-n", "k8s.io", "images", "import", "--all-platforms", str(archive))


def imported(archive: Path) -> Path:
    """Whose being there says that the node has it."""
    return _IMPORTED / archive.name


def _run(*command: Any, check: bool = True) -> int:
    done = subprocess.run(
        list(map(str, command)), check=False, capture_output=True, text=True, timeout=600
    )
    if check and done.returncode:
        raise OSError(f"{' '.join(map(str, command))}: {done.stderr.strip()}")
    return done.returncode


def _wait_for(ready: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not ready():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {_PATIENCE_S:.0f} s: {what}")
        time.sleep(0.05)


if __name__ == "__main__":
    main()
