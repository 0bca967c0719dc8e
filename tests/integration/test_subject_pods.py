"""Pods made of real cgroups and processes, through the whole collector, against the kernel."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from reveal_collector.collector import Collector
from reveal_collector.shipping.sinks import RecordingSink
from reveal_contract.recording import RecordingWriter
from reveal_contract.settings import CollectorSettings
from support.cgroup_pods import NEEDED, USAGE, Recorded, remove, remove_all, usage, work
from support.hosts.cgroups import Container, PodSpec, pod_list
from support.polling import wait_until

LONG = PodSpec("train-0", "1b2c3d4e-5f60-4718-8a9b-0c1d2e3f4a5b", (Container("worker", 0),), "ml")
SHORT = PodSpec("job-1", "ffffffff-0000-4111-8222-333333333333", (Container("main", 0),), "ml")

pytestmark = NEEDED


@pytest.fixture
def start() -> Iterator[Callable[[PodSpec, str], None]]:
    """Starts pods that run until the end of the test; removes them and their cgroups."""
    workers: list[subprocess.Popen[bytes]] = []
    yield lambda pod, kind: workers.append(work(pod, kind, 120.0))
    for worker in workers:
        worker.kill()
        worker.wait()
    remove_all(LONG, SHORT)


def short_life(lived: list[int]) -> None:
    """Run a pod that lives for less than a slice; append its CPU time in ns."""
    work(SHORT, "cpu", 0.35).wait()
    # models the kubelet, which removes an empty cgroup later than one sample period after its end
    time.sleep(0.25)
    lived.append(usage(SHORT))
    remove(SHORT)


def has_ended(recording: Recorded, instance: str) -> bool:
    return (row := recording.subjects().get(instance)) is not None and row.until_ns > 0


@pytest.mark.timeout(120)
def test_pods_are_measured_as_the_kernel_counts_them(
    start: Callable[[PodSpec, str], None], tmp_path: Path
) -> None:
    listed = tmp_path / "pods.json"
    listed.write_text(json.dumps(pod_list([LONG, SHORT], "n1")))
    start(LONG, "net")
    wait_until(lambda: usage(LONG) > 1e8, "the pod computes")
    settings = CollectorSettings(
        "n1", "", pod_source="file", pod_file=str(listed), cpu_budget_millicores=100,
        include=("stat", "cpuclock", "cgroup-cpu", "cgroups", "subject-network", "subject-fine"),
    )  # fmt: skip
    collector = Collector(settings, [RecordingSink(RecordingWriter(tmp_path / "r"))])
    before = usage(LONG)
    lived: list[int] = []
    recorded = partial(Recorded, tmp_path / "r")
    try:
        collector.start()
        wait_until(lambda: recorded().total(f"{USAGE}{{ml/train-0}}") > 2e9, "two busy seconds")
        inside = usage(LONG)
        life = threading.Thread(target=short_life, args=(lived,))
        life.start()
        life.join()
        job = f"{USAGE}{{ml/job-1}}"
        wait_until(lambda: recorded().total(job) >= lived[0], "the short pod is recorded")
        wait_until(lambda: has_ended(recorded(), "ml/job-1"), "its end is recorded")
    finally:
        collector.stop()
    after = usage(LONG)
    observed = recorded()
    table = observed.subjects()
    assert table["ml/train-0"].uid == LONG.uid
    assert table["ml/job-1"].until_ns > table["ml/job-1"].since_ns > 0
    used = observed.total(f"{USAGE}{{ml/train-0}}")
    assert inside - before - 1.5e9 < used <= after - before + 2e8
    # the whole use of a pod that lived for less than a slice is counted once
    assert observed.total(f"{USAGE}{{ml/job-1}}") == lived[0]
    # its own network namespace: it talked to nobody but itself
    assert observed.total("network.subject.out_segs{ml/train-0}") > 100
    assert observed.total("network.subject.rx_bytes{ml/train-0}") == 0


@pytest.mark.timeout(90)
def test_the_parts_of_a_tick_add_up_to_the_tick(
    start: Callable[[PodSpec, str], None], tmp_path: Path
) -> None:
    listed = tmp_path / "pods.json"
    listed.write_text(json.dumps(pod_list([LONG], "n1")))
    start(LONG, "cpu")
    settings = CollectorSettings(
        # few subjects: to read those of a host with many takes longer than a tick of ten may
        "n1", "", pod_source="file", pod_file=str(listed), cpu_budget_millicores=500,
        max_subjects=8, include=("cgroup-cpu", "subject-fine"),
    )  # fmt: skip
    collector = Collector(settings, [RecordingSink(RecordingWriter(tmp_path / "r"))])
    try:
        collector.start()
        wait_until(lambda: len(fifths(tmp_path / "r")) >= 3, "fifths of three slices")
    finally:
        collector.stop()
    for fine, whole in fifths(tmp_path / "r"):
        assert fine == pytest.approx(whole, abs=0.25e9)  # the edges are up to two fifths apart


def fifths(path: Path) -> list[tuple[float, float]]:
    """Return the sum of the fifths of a tick and that of the ticks, in ns, for each slice."""
    sums = []
    for message, table in Recorded(path).slices:
        labels = [channel.label for channel in table.fast]
        parts = f"{USAGE}.fine{{ml/train-0#"  # other cgroups of this host may be busy, too
        fine = [index for index, label in enumerate(labels) if label.startswith(parts)]
        whole = f"{USAGE}{{ml/train-0}}"  # on a saturated host it is read once a second
        if fine and whole in labels and not message.fast_missing[:, fine].any():
            of_ticks = float(message.fast[:, labels.index(whole)].sum())
            sums.append((float(message.fast[:, fine].sum()) * 1000, of_ticks))
    return sums
