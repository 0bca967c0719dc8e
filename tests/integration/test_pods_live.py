"""Pods made of real cgroups and processes, through the whole collector, against the kernel."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from hosts.cgroups import Container, Layout, PodSpec, pod_list
from reveal_collector.collector import Collector
from reveal_collector.shipment import RecordingSink
from reveal_contract.channels import ChannelTable
from reveal_contract.recording import Reader, Writer
from reveal_contract.settings import CollectorSettings
from reveal_contract.subjects import from_rows
from reveal_contract.wire import Message, decode, gauges

ROOT = Path("/sys/fs/cgroup")
CONTROLLERS = ("cpu", "cpuacct", "memory", "pids", "blkio")
LAYOUT = Layout("v1", "containerd", "cgroupfs")
LONG = PodSpec("train-0", "1b2c3d4e-5f60-4718-8a9b-0c1d2e3f4a5b", (Container("worker", 0),), "ml")
SHORT = PodSpec("job-1", "ffffffff-0000-4111-8222-333333333333", (Container("main", 0),), "ml")
USAGE = "cpu.subject.usage"

# joins the cgroups it is told, then works; in its own network namespace it talks to itself
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

pytestmark = [
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
        made = folders(LAYOUT.container(pod, pod.containers[0].id(pod.uid)))
        for folder in made:
            folder.mkdir(parents=True)
    except OSError as error:
        pytest.skip(f"no cgroups may be made here: {error.strerror}")
    return made


def remove(pod: PodSpec) -> None:
    container = LAYOUT.container(pod, pod.containers[0].id(pod.uid))
    for path in (container, LAYOUT.pod(pod)):
        for folder in folders(path):
            if folder.exists():
                folder.rmdir()


def work(pod: PodSpec, kind: str, seconds: float) -> subprocess.Popen[bytes]:
    files = [str(folder / "cgroup.procs") for folder in make(pod)]
    command = [sys.executable, "-c", WORK, kind, str(seconds), *files]
    return subprocess.Popen(["unshare", "-n", *command] if kind == "net" else command)


def usage(pod: PodSpec) -> int:
    return int((ROOT / f"cpuacct{LAYOUT.pod(pod)}/cpuacct.usage").read_text())


@pytest.fixture
def no_pods() -> Iterator[None]:
    yield
    for pod in (LONG, SHORT):
        remove(pod)
    for path in ("/kubepods/burstable", "/kubepods"):
        for folder in folders(path):
            if folder.exists():
                folder.rmdir()


class Recorded:
    """All slices of a recording, and its notes."""

    def __init__(self, path: Path) -> None:
        self.slices: list[tuple[Message, ChannelTable]] = []
        self.notes = []
        for record in Reader(path):
            if record.note is not None:
                self.notes.append(record.note)
            elif record.table is not None:
                self.slices.append((decode(record.data, gauges(record.table)), record.table))

    def total(self, label: str) -> float:
        """What a counter rose by, in base units."""
        total = 0.0
        for message, table in self.slices:
            for values, missing, channels in (
                (message.fast, message.fast_missing, table.fast),
                (message.slow[None], message.slow_missing[None], table.slow),
            ):
                for at, channel in enumerate(channels):
                    if channel.label == label:
                        known = np.where(missing[:, at], 0, values[:, at])
                        total += float(known.sum()) * channel.scale
        return total


def short_life(lived: list[int]) -> None:
    """A pod that comes, works for a moment and is gone; what it used in all."""
    work(SHORT, "cpu", 0.35).wait()
    time.sleep(0.25)  # a kubelet takes longer to remove what is empty; a tick is what it must
    lived.append(usage(SHORT))
    remove(SHORT)


@pytest.mark.timeout(90)
@pytest.mark.usefixtures("no_pods")
def test_pods_are_measured_as_the_kernel_counts_them(tmp_path: Path) -> None:
    listed = tmp_path / "pods.json"
    listed.write_text(json.dumps(pod_list([LONG, SHORT], "n1")))
    worker = work(LONG, "net", 60.0)
    time.sleep(0.3)
    settings = CollectorSettings(
        "n1", "", pod_source="file", pod_file=str(listed), cpu_budget_millicores=100,
        include=("stat", "cpuclock", "cgroup-cpu", "cgroups", "subject-network", "subject-fine"),
    )  # fmt: skip
    collector = Collector(settings, [RecordingSink(Writer(tmp_path / "r"))])
    before = usage(LONG)
    lived: list[int] = []
    try:
        collector.start()
        time.sleep(3.2)
        inside = usage(LONG)
        life = threading.Thread(target=short_life, args=(lived,))
        life.start()
        life.join()
        time.sleep(4.5)
        after = usage(LONG)
        collector.stop()
    finally:
        worker.kill()
        worker.wait()
    seen = Recorded(tmp_path / "r")
    table = {one.instance: one for note in seen.notes for one in from_rows(note["subjects"])}
    assert table["ml/train-0"].uid == LONG.uid
    assert table["ml/job-1"].until_ns > table["ml/job-1"].since_ns > 0
    used = seen.total(f"{USAGE}{{ml/train-0}}")
    assert inside - before - 1.5e9 < used <= after - before + 2e8
    # what a pod used that lived for less than a slice is told once, all of it
    assert seen.total(f"{USAGE}{{ml/job-1}}") == lived[0]
    # its own network namespace: it talked to nobody but itself
    assert seen.total("network.subject.out_segs{ml/train-0}") > 100
    assert seen.total("network.subject.rx_bytes{ml/train-0}") == 0


@pytest.mark.timeout(60)
@pytest.mark.usefixtures("no_pods")
def test_fifths_of_a_tick_add_up_to_the_tick(tmp_path: Path) -> None:
    listed = tmp_path / "pods.json"
    listed.write_text(json.dumps(pod_list([LONG], "n1")))
    worker = work(LONG, "cpu", 60.0)
    settings = CollectorSettings(
        "n1", "", pod_source="file", pod_file=str(listed), cpu_budget_millicores=500,
        include=("cgroup-cpu", "subject-fine"),
    )  # fmt: skip
    collector = Collector(settings, [RecordingSink(Writer(tmp_path / "r"))])
    try:
        collector.start()
        time.sleep(6.5)
        collector.stop()
    finally:
        worker.kill()
        worker.wait()
    slices = Recorded(tmp_path / "r").slices
    compared = 0
    for message, table in slices:
        labels = [channel.label for channel in table.fast]
        fine = [at for at, label in enumerate(labels) if label.startswith(f"{USAGE}.fine")]
        if not fine or message.fast_missing[:, fine].any():
            continue
        whole = float(message.fast[:, labels.index(f"{USAGE}{{ml/train-0}}")].sum())
        parts = float(message.fast[:, fine].sum()) * 1000
        assert parts == pytest.approx(whole, abs=0.25e9)  # the edges are up to two fifths apart
        compared += 1
    assert compared >= 2
