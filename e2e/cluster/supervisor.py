"""``python -m cluster.supervisor FOLDER``: the process that a cluster lives and dies with.

It starts the control plane and the nodes that ``FOLDER/plan.json`` names, then does what it is
asked for through a socket, as whoever starts a node must live on.  At SIGTERM it takes everything
down again and removes the folder; what it started cannot outlive it, however it ends.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import string
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from cluster import archives, binaries, cgroups, inside, machine, network
from cluster.daemons import Daemon, StartError
from cluster.network import BRIDGED, NUMBERS
from cluster.nodes import Node
from cluster.plane import ControlPlane, Options
from cluster.vm import Vm, is_virtual

STATE, PLAN, SOCKET, LOG = "state.json", "plan.json", "control", "supervisor.log"
_DNS_S = 120.0
_SYSCTL = "sysctl.json"
# in no folder, and gone with the process that holds it
_LOCK = f"\0reveal-cluster-{BRIDGED.bridge}"


@dataclass(frozen=True)
class Plan:
    """What a cluster is made of."""

    nodes: int
    images: dict[str, str]  # archive: image
    vms: int = 0

    @property
    def names(self) -> list[str]:
        """Of all nodes; those with a kernel of their own come up while others are waited for."""
        virtual = [f"vm{number}" for number in range(1, self.vms + 1)]
        return [*virtual, *(f"node{number}" for number in range(1, self.nodes + 1))]

    def save(self, folder: Path) -> None:
        (folder / PLAN).write_text(json.dumps(asdict(self)))


class Supervisor:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._plan = Plan(**json.loads((folder / PLAN).read_text()))
        self._began = time.monotonic()
        self._nodes: dict[str, Node | Vm] = {}
        self._plane: ControlPlane | None = None
        self._scheduler: Daemon | None = None
        self._ready = False

    def run(self) -> None:
        """Until SIGTERM; afterwards nothing is left."""
        with socket.socket(socket.AF_UNIX) as lock:
            lock.bind(_LOCK)
            try:
                self._write_state()
                self._start()
                self._serve()
            finally:
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                self._stop()

    def _start(self) -> None:
        machine.remember(self._folder / _SYSCTL)
        network.build(BRIDGED)
        plane = ControlPlane(binaries.find(), self._folder, Options(network=BRIDGED))
        self._plane = plane
        plane.start()
        self._log("control plane")
        user = plane.certificates.issue("scheduler", "/CN=system:kube-scheduler")
        self._scheduler = Daemon(
            "kube-scheduler",
            (plane.programs["kube-scheduler"], "--secure-port=0", "--leader-elect=false",
             f"--kubeconfig={plane.config('scheduler', user)}"),
            self._folder / "kube-scheduler.log",
        )  # fmt: skip
        self._scheduler.start()
        self._boot(self._plan.names)
        self._dns()
        self._ready = True
        self._write_state()

    def _boot(self, names: Sequence[str]) -> None:
        for name in names:
            self._switch_on(name)
        self._write_state()
        for name in reversed(names):
            _wait_for(partial(self._is_ready, name), self._nodes[name].patience, name)
            self._log(f"{name} Ready")

    def _switch_on(self, name: str) -> None:
        """A node that was not there before."""
        assert self._plane is not None
        kind = Vm if is_virtual(name) else Node
        self._nodes[name] = kind(self._plane, name, tuple(map(Path, self._plan.images)))
        self._nodes[name].start()

    def _is_ready(self, name: str) -> bool:
        assert self._plane is not None
        if not self._nodes[name].running:
            raise StartError(f"{name} ended; see {self._folder / name}.log")
        status, node = self._plane.request("GET", f"/api/v1/nodes/{name}")
        conditions = node["status"].get("conditions", ()) if status == 200 else ()
        return any(
            condition["type"] == "Ready" and condition["status"] == "True"
            for condition in conditions
        )

    def _dns(self) -> None:
        assert self._plane is not None
        text = string.Template(Path(__file__).with_name("dns.yaml").read_text())
        manifest = text.substitute(address=BRIDGED.dns, image=archives.COREDNS)
        self._kubectl("apply", "-f", "-", text=manifest)
        wait = ("wait", "--for=condition=Available", "deployment/coredns")
        self._kubectl("-n", "kube-system", *wait, f"--timeout={_DNS_S:.0f}s")
        self._log("DNS")

    def _kubectl(self, *words: str, text: str = "") -> None:
        assert self._plane is not None
        program, config = self._plane.programs["kubectl"], self._plane.kubeconfig
        done = subprocess.run(
            [str(program), "--kubeconfig", str(config), *words],
            input=text, check=False, capture_output=True, text=True,
        )  # fmt: skip
        if done.returncode:
            raise StartError(f"kubectl {' '.join(words)}: {done.stderr.strip()}")

    def _serve(self) -> None:
        """One request at a time, in this thread: what it starts dies with the thread."""
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(self._folder / SOCKET))
            listening.listen()
            while True:
                connection, _ = listening.accept()
                with connection, connection.makefile("rw") as lines:
                    lines.write(json.dumps(self._answer(json.loads(lines.readline()))) + "\n")

    def _answer(self, asked: dict[str, Any]) -> dict[str, str]:
        try:
            if asked["do"] == "spread":
                self._spread(asked["file"], asked["image"])
            elif asked["do"] in ("crash", "resume"):
                self._control(asked["do"])
            else:
                self._do(asked["do"], asked["node"])
        except (OSError, StartError, KeyError, ValueError, subprocess.SubprocessError) as error:
            return {"error": f"{type(error).__name__}: {error}"}
        self._write_state()
        return {}

    def _do(self, what: str, name: str) -> None:
        number = network.number(name)
        if what == "start" and name not in self._nodes:
            self._switch_on(name)  # who asks waits: others may ask meanwhile
            return
        node = self._nodes[name]
        actions: dict[str, Callable[[], object]] = {
            "start": node.start,
            "stop": node.shut_down,
            "kill": node.kill,
            "disconnect": lambda: network.disconnect(BRIDGED, number),
            "join": lambda: network.join(BRIDGED, number),
            "remove": lambda: self._remove(name),
        }
        actions[what]()

    def _control(self, what: str) -> None:
        """The API server ends without a word, or is started again with what etcd has."""
        assert self._plane is not None
        if what == "crash":
            self._plane.kill()
        else:
            self._plane.resume()

    def _remove(self, name: str) -> None:
        """It never was: disk and node object go too."""
        assert self._plane is not None
        node = self._nodes.pop(name)
        node.kill()
        self._plane.request("DELETE", f"/api/v1/nodes/{name}")
        shutil.rmtree(node.folder)

    def _spread(self, file: str, image: str) -> None:
        """To all nodes, and to those that start later; an image of that name is replaced."""
        for node in self._nodes.values():
            if node.running:
                node.load(Path(file))
        name = image.rpartition(":")[0]
        others = {
            file: image for file, image in self._plan.images.items() if f"{name}:" not in image
        }
        self._plan = replace(self._plan, images={**others, file: image})
        for node in self._nodes.values():
            node.archives = tuple(map(Path, self._plan.images))

    def _write_state(self) -> None:
        """The state file, whole at any time."""
        pids = {name: item.pid for name, item in self._nodes.items()}
        state = {
            "pid": os.getpid(), "started": started(os.getpid()), "ready": self._ready,
            "nodes": {name: pid for name, pid in pids.items() if not is_virtual(name)},
            "vms": {name: pid for name, pid in pids.items() if is_virtual(name)},
            "images": self._plan.images,
            "kubeconfig": str(self._plane.kubeconfig) if self._plane else "",
            "programs": str(self._plane.programs["kubectl"].parent) if self._plane else "",
        }  # fmt: skip
        unfinished = self._folder / f"{STATE}.unfinished"
        unfinished.write_text(json.dumps(state))
        unfinished.replace(self._folder / STATE)

    def _stop(self) -> None:
        for node in self._nodes.values():
            node.unplug_power()
        if self._scheduler is not None:
            self._scheduler.kill()
        if self._plane is not None:
            self._plane.stop()
        sweep(self._folder)

    def _log(self, what: str) -> None:
        print(f"{time.monotonic() - self._began:6.1f} s  {what}", flush=True)


def sweep(folder: Path) -> list[Path]:
    """Restore the machine; return the cgroups that could not be removed."""
    left = [path for number in NUMBERS for path in cgroups.remove(inside.cgroup(f"node{number}"))]
    network.remove(BRIDGED)
    machine.restore(folder / _SYSCTL)
    empty(folder)
    return left


def empty(folder: Path) -> None:
    """Remove the folder of a cluster; no other, whatever its name."""
    if (folder / PLAN).exists():
        for path in folder.iterdir():
            if path.name != PLAN:  # the last to go: what is left of an interruption is still ours
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        shutil.rmtree(folder)


def occupied() -> bool:
    """Whether a cluster runs on this machine, in whatever folder."""
    with socket.socket(socket.AF_UNIX) as trial:
        try:
            trial.bind(_LOCK)
        except OSError:
            return True
    return False


def started(pid: int) -> int:
    """Start time of a process in ticks since boot: it distinguishes reused process IDs.

    0 of none, and of one that has ended and that nobody has asked after.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except OSError:
        return 0
    return 0 if fields[0] == "Z" else int(fields[19])


def _wait_for(ready: Callable[[], bool], seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > deadline:
            raise StartError(f"not within {seconds:.0f} s: {what}")
        time.sleep(0.2)


def _terminated(number: int, frame: FrameType | None) -> None:
    raise SystemExit(0)


def main() -> int:
    signal.signal(signal.SIGTERM, _terminated)
    try:
        Supervisor(Path(sys.argv[1])).run()
    except (OSError, StartError) as error:
        print(f"error: {error}", flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
