"""A cluster as seen from outside: brought up, taken down, its nodes broken and looked into.

Its folder holds its whole state, so that any process can control it.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from cluster import archives, binaries, building, inside, machine, nodes, rootfs, supervisor, vm
from cluster.archives import Archive
from cluster.daemons import StartError
from cluster.supervisor import LOG, SOCKET, STATE, Plan
from cluster.vm import Vm
from images.store import Store
from images.store import cache as images_cache

Log = Callable[[str], None]
_E2E = Path(__file__).parents[1]
_STOP_S = 90.0
_KILL_S = 5.0
_READY_S = Vm.patience


def default_folder() -> Path:
    return Path(tempfile.gettempdir()) / "reveal-cluster"


class Cluster:
    """A running cluster; nodes are ``node1``, ``node2`` and so on, virtual machines ``vm1``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def state(self) -> dict[str, Any]:
        """What its supervisor tells; empty where there is none."""
        try:
            saved: dict[str, Any] = json.loads((self.folder / STATE).read_text())
        except FileNotFoundError:
            return {}
        return saved

    @property
    def running(self) -> bool:
        return supervised(self.state)

    @property
    def kubeconfig(self) -> Path:
        return Path(self.state["kubeconfig"])

    @property
    def nodes(self) -> list[str]:
        """Those that share this machine's kernel."""
        return sorted(self.state.get("nodes", ()))

    @property
    def vms(self) -> list[str]:
        """Those with a kernel of their own."""
        return sorted(self.state.get("vms", ()))

    def image(self, name: str) -> str:
        """The full name of an image that all nodes have: ``reveal-collector``."""
        found = [image for image in self.state["images"].values() if f"/{name}:" in image]
        return str(found[0])

    def program(self, name: str) -> Path:
        return Path(self.state["programs"], name)

    def start(self, node: str) -> None:
        """Switch a node on, with what is on its disk; a new number is a new node."""
        if vm.is_virtual(node):
            rootfs.make()
        self._ask("start", node)

    def stop(self, node: str) -> None:
        """Shut it down."""
        self._ask("stop", node)

    def kill(self, node: str) -> None:
        """Pull its plug."""
        self._ask("kill", node)

    def disconnect(self, node: str) -> None:
        """Pull its cable."""
        self._ask("disconnect", node)

    def join(self, node: str) -> None:
        """Plug the cable in again."""
        self._ask("join", node)

    def is_ready(self, node: str) -> bool:
        """Whether its kubelet reports Ready and the node controller agrees."""
        path = '{.status.conditions[?(@.type=="Ready")].status}'
        arguments = ("get", "node", node, "--ignore-not-found", "-o", f"jsonpath={path}")
        return self.kubectl(*arguments) == "True"

    def crash_api(self) -> None:
        """The API server is killed and stays away; nodes and their pods run on."""
        self._ask("crash", "")

    def resume_api(self) -> None:
        """Start it again, on its port, and return when it is ready."""
        self._ask("resume", "")

    def remove(self, node: str) -> None:
        """Pull its plug and forget it, with its disk and what the cluster knows of it."""
        self._ask("remove", node)

    def spread(self, archive: Archive) -> None:
        """Make an image known to all nodes, also to those that start later."""
        self._ask("spread", file=str(archive.file), image=archive.image)

    def execute(self, node: str, *command: str | Path, seconds: float = 60.0) -> str:
        """What a command prints on a node; it must not fail."""
        if vm.is_virtual(node):
            return vm.execute(self.folder / "nodes" / node, *command, seconds=seconds)
        return nodes.execute(self.state["nodes"][node], *command, seconds=seconds)

    def import_image(self, node: str, archive: Path) -> None:
        """Make the image of an archive (docker save, buildah push) known to a node."""
        self.execute(node, *inside.importing(archive.resolve()), seconds=600)

    def kubectl(self, *words: str, text: str = "") -> str:
        """What kubectl prints; ``CalledProcessError`` when it fails."""
        command = [str(self.program("kubectl")), "--kubeconfig", str(self.kubeconfig), *words]
        return subprocess.run(
            command, input=text, check=True, capture_output=True, text=True
        ).stdout

    def _ask(self, what: str, node: str = "", **more: str) -> None:
        with socket.socket(socket.AF_UNIX) as talking:
            talking.connect(str(self.folder / SOCKET))
            with talking.makefile("rw") as lines:
                lines.write(json.dumps({"do": what, "node": node, **more}) + "\n")
                lines.flush()
                answer = json.loads(lines.readline())
        if why := answer.get("error"):
            raise OSError(f"{what} {node}: {why}")


def supervised(state: dict[str, Any]) -> bool:
    """Whether the supervisor of that state is alive."""
    return bool(state) and supervisor.started(state["pid"]) == state["started"] != 0


def prepare(log: Log = print, vms: int = 0) -> tuple[Archive, ...]:
    """Programs and images, built where they are not there yet; disks where there are ``vms``."""
    if why := machine.missing(vms):
        raise StartError(why)
    if vms:
        rootfs.make(log)
    building.build(log, (*binaries.ALL, *binaries.NODES))
    return archives.make(Store(images_cache()), log)


def plan(images: tuple[Archive, ...], nodes: int, vms: int = 0) -> Plan:
    """A cluster of so many nodes with these images."""
    return Plan(nodes, {str(item.file): item.image for item in images}, vms)


def up(folder: Path, expected: Plan, log: Log, *, bound: bool) -> Cluster:
    """A cluster as planned; one that runs gets the images and nodes that are missing.

    ``bound``: it ends with the thread that calls.
    """
    found = Cluster(folder)
    if found.running and found.state["ready"]:
        _complete(found, expected, log)
        return found
    if not found.running:
        _take(folder)
        expected.save(folder)
        _spawn(folder, bound)
    _follow(found, log)
    return found


def down(folder: Path) -> list[Path]:
    """End the cluster of that folder and put the machine back; what could not be removed."""
    state = Cluster(folder).state
    for number, seconds in ((signal.SIGTERM, _STOP_S), (signal.SIGKILL, _KILL_S)):
        if supervised(state):
            os.kill(state["pid"], number)
            _await_end(state, seconds)
    if supervisor.occupied():  # by a cluster in another folder: the machine is its own now
        supervisor.empty(folder)
        return []
    return supervisor.sweep(folder)


def prepare_unless_up(vms: int = 0) -> None:
    """Before the first test: none's time limit has to hold minutes of building."""
    found = Cluster(default_folder())
    if not found.running:
        prepare(vms=vms)
    elif vms:
        rootfs.make()


def _await_end(state: dict[str, Any], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while supervised(state) and time.monotonic() < deadline:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(state["pid"], os.WNOHANG)  # it may be ours
        time.sleep(0.05)


@contextmanager
def running(count: int, log: Log = print, vms: int = 0) -> Iterator[Cluster]:
    """The cluster that is up already, with the images that it has, left up; else one of its own.

    Missing virtual machines are added, and removed afterwards.
    """
    found = Cluster(default_folder())
    if found.running:
        with _virtual(found, vms, log):
            yield found
        return
    images = prepare(log, vms)
    folder = Path(tempfile.mkdtemp(prefix="reveal-cluster-"))
    try:
        yield up(folder, plan(images, count, vms), log, bound=True)
    finally:
        down(folder)


@contextmanager
def _virtual(found: Cluster, count: int, log: Log) -> Iterator[None]:
    """As many as wanted; those that were not there are gone afterwards."""
    there = found.vms
    try:
        _start(found, (f"vm{number}" for number in range(1, count + 1)), log)
        yield
    finally:
        for name in set(found.vms) - set(there):
            found.remove(name)


def _take(folder: Path) -> None:
    """Make room for a cluster in this folder, where one was killed too."""
    if supervisor.occupied():
        raise StartError("another cluster runs on this machine, which has room for one")
    supervisor.sweep(folder)
    if folder.exists() and any(folder.iterdir()):
        raise StartError(f"{folder} holds something else: name a folder for the cluster alone")
    folder.mkdir(parents=True, exist_ok=True)


def _spawn(folder: Path, bound: bool) -> None:
    command = [sys.executable, "-m", "cluster.supervisor", str(folder)]
    if bound and shutil.which("setpriv"):
        command = ["setpriv", "--pdeathsig", "TERM", "--", *command]
    with (folder / LOG).open("ab") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            env={**os.environ, "PYTHONPATH": str(_E2E)},
        )  # fmt: skip
    while not (folder / STATE).exists() and process.poll() is None:
        time.sleep(0.02)


def _follow(cluster: Cluster, print_line: Log) -> None:
    """Tell its supervisor's steps until it is ready."""
    text = ""
    with (cluster.folder / LOG).open() as log:
        while True:
            ready = cluster.running and cluster.state["ready"]
            for line in log:
                text += line
                print_line(line.rstrip())
            if ready:
                return
            if not cluster.running:
                raise StartError(f"no cluster came up:\n{text[-3000:]}")
            time.sleep(0.1)


def _complete(cluster: Cluster, expected: Plan, log: Log) -> None:
    _start(cluster, expected.names, log)
    known = set(cluster.state["images"])
    for file, image in expected.images.items():
        if file not in known:
            archive = Archive(image, Path(file))
            _timed(log, f"{image} imported", partial(cluster.spread, archive))


def _start(cluster: Cluster, names: Iterable[str], log: Log) -> None:
    """Those of the nodes that are not there."""
    there = {*cluster.nodes, *cluster.vms}
    for name in names:
        if name not in there:
            _timed(log, f"{name} Ready", partial(_start_node, cluster, name))


def _start_node(cluster: Cluster, name: str) -> None:
    cluster.start(name)
    deadline = time.monotonic() + _READY_S
    while not cluster.is_ready(name):
        if time.monotonic() > deadline:
            raise StartError(f"not within {_READY_S:.0f} s: {name}")
        time.sleep(0.5)


def _timed(log: Log, what: str, do: Callable[[], object]) -> None:
    began = time.monotonic()
    do()
    log(f"{time.monotonic() - began:6.1f} s  {what}")
