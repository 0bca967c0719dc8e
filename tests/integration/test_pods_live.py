"""Pods made of real cgroups and processes, through the whole collector, against the kernel."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from reveal_collector.collector import Collector
from reveal_collector.shipping.sinks import RecordingSink
from reveal_contract.recording import Writer
from reveal_contract.settings import CollectorSettings
from reveal_contract.subjects import from_rows
from support.cgroup_pods import NEEDED, USAGE, Recorded, remove, remove_all, usage, work
from support.hosts.cgroups import Container, PodSpec, pod_list

LONG = PodSpec("train-0", "1b2c3d4e-5f60-4718-8a9b-0c1d2e3f4a5b", (Container("worker", 0),), "ml")
SHORT = PodSpec("job-1", "ffffffff-0000-4111-8222-333333333333", (Container("main", 0),), "ml")

pytestmark = NEEDED


@pytest.fixture
def no_pods() -> Iterator[None]:
    yield
    remove_all(LONG, SHORT)


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
