"""Pods made of real cgroups (version 1) and processes, and a recording of them."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from reveal_contract.channels import ChannelTable
from reveal_contract.recording import RecordingReader
from reveal_contract.subjects import Identity, from_rows
from reveal_contract.wire import Message, decode, gauges
from support.hosts.cgroups import Layout, PodSpec

ROOT = Path("/sys/fs/cgroup")
CONTROLLERS = ("cpu", "cpuacct", "memory", "pids", "blkio")
LAYOUT = Layout("v1", "containerd", "cgroupfs")
USAGE = "cpu.subject.usage"

# joins the given cgroups, then works; in its own network namespace it sends to itself
WORK = """
import os, socket, struct, sys, time, fcntl
for file in sys.argv[3:]:
    open(file, "w").write(str(os.getpid()))
if sys.argv[1] == "net":
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, 0x8914, struct.pack("16sh", b"lo", 1))
    server = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(server.getsockname())
    peer, _ = server.accept()
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    if sys.argv[1] == "net":
        client.send(b"x"); peer.recv(1)
    sum(range(2000))
"""

NEEDED = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
    pytest.mark.skipif(
        not all((ROOT / name / "cgroup.procs").exists() for name in CONTROLLERS),
        reason="no cgroup version 1 hierarchies",
    ),
    pytest.mark.skipif((ROOT / "cpuacct/kubepods").exists(), reason="this is a node of Kubernetes"),
]


def folders(path: str) -> list[Path]:
    return [ROOT / controller / path[1:] for controller in CONTROLLERS]


def make(pod: PodSpec) -> list[Path]:
    """The container's cgroups, whose processes are in no other."""
    try:
        created = folders(LAYOUT.container(pod, pod.containers[0].id(pod.uid)))
        for folder in created:
            folder.mkdir(parents=True)
    except OSError as error:
        pytest.skip(f"no cgroups may be made here: {error.strerror}")
    return created


def remove(pod: PodSpec) -> None:
    container = LAYOUT.container(pod, pod.containers[0].id(pod.uid))
    for path in (container, LAYOUT.pod(pod)):
        for folder in folders(path):
            if folder.exists():
                folder.rmdir()


def remove_all(*pods: PodSpec) -> None:
    """The pods and the cgroups that lead to them, as far as nobody else's pods are there."""
    for pod in pods:
        remove(pod)
    for path in ("/kubepods/burstable", "/kubepods/besteffort", "/kubepods"):
        for folder in folders(path):
            with contextlib.suppress(OSError):
                folder.rmdir()


def work(pod: PodSpec, kind: str, seconds: float) -> subprocess.Popen[bytes]:
    files = [str(folder / "cgroup.procs") for folder in make(pod)]
    command = [sys.executable, "-c", WORK, kind, str(seconds), *files]
    return subprocess.Popen(["unshare", "-n", *command] if kind == "net" else command)


def usage(pod: PodSpec) -> int:
    return int((ROOT / f"cpuacct{LAYOUT.pod(pod)}/cpuacct.usage").read_text())


class Recorded:
    """All slices of a recording, and its notes."""

    def __init__(self, path: Path) -> None:
        self.slices: list[tuple[Message, ChannelTable]] = []
        self.notes = []
        for record in RecordingReader(path):
            if record.note is not None:
                self.notes.append(record.note)
            elif record.table is not None:
                self.slices.append((decode(record.data, gauges(record.table)), record.table))

    def subjects(self) -> dict[str, Identity]:
        """The last row of each subject by its instance."""
        rows = (row for note in self.notes for row in from_rows(note["subjects"]))
        return {row.instance: row for row in rows}

    def total(self, label: str) -> float:
        """What a counter rose by, in base units."""
        total = 0.0
        for message, table in self.slices:
            for values, missing, channels in (
                (message.fast, message.fast_missing, table.fast),
                (message.slow[None], message.slow_missing[None], table.slow),
            ):
                for index, channel in enumerate(channels):
                    if channel.label == label:
                        known = np.where(missing[:, index], 0, values[:, index])
                        total += float(known.sum()) * channel.scale
        return total
