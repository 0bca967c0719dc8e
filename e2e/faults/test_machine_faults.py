"""Faults detected by counters of the whole machine: nodes that share it all show them.

So one node is watched, the one whose pod does it; which of several nodes it is can be seen only
where each has a kernel of its own. Huge pages that one node of three reserves are of that kind
(``vm.nr_hugepages`` is the machine's here), and are no case.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from cluster.handle import Cluster
from reveal_cli.faults.disk import disk_of
from support.cluster_release import Release
from support.fault_run import fault_run
from support.faulty_pods import FORGETFUL, KNOWN_S, Expected
from workloads import command

pytestmark = pytest.mark.timeout(900)

_STARTED_S = 20.0  # a job that starts is no finding
_SLOW_BYTES = 1 << 20
_BLKIO = Path("/sys/fs/cgroup/blkio")


@dataclass(frozen=True)
class Culprit:
    """A pod of one container that does harm ``KNOWN_S`` after its start."""

    fault: str
    subsystem: str
    hypothesis: str
    command: list[str]
    resources: dict[str, Any] = field(default_factory=dict)


CULPRITS = (
    Culprit(
        "one CPU overloaded by interrupts", "CPU", "InterruptPressure",
        command("timers", str(KNOWN_S)),
    ),
    Culprit(
        "context-switch storm", "CPU", "ContextSwitchStorm", command("switching", str(KNOWN_S))
    ),
    Culprit(
        "memory limit with page cache thrash", "Memory", "MemoryPressure",
        command("reading", "/data", str(KNOWN_S)), {"limits": {"memory": "96Mi"}},
    ),
    Culprit(
        "killed for its memory again and again", "Memory", "OOMKill",
        ["sh", "-c", FORGETFUL], {"limits": {"memory": "64Mi"}},
    ),
    Culprit(
        "writeback storm", "Storage", "WritebackBurst",
        command("writing", "/checkpoint", "600", str(KNOWN_S)),
    ),
)  # fmt: skip


@pytest.mark.parametrize("culprit", CULPRITS, ids=lambda item: str(item.hypothesis))
def test_a_harmful_pod_is_reported(
    single_node: Release, jobs: str, data_file: Path, culprit: Culprit
) -> None:
    expected = Expected("node1", culprit.subsystem, culprit.hypothesis, f"{jobs}/culprit")
    container = {"command": culprit.command, "resources": culprit.resources}
    with (
        fault_run(culprit.fault, single_node, expected) as story,
        single_node.pod(jobs, "node1", "culprit", {"/data": data_file}, **container),
    ):
        story.start_in(jobs, "culprit")


def test_a_slow_volume_of_a_single_pod_is_reported(
    single_node: Release, jobs: str, data_file: Path
) -> None:
    """A data loader whose reads the block layer holds back, as a volume's quota does."""
    expected = Expected("node1", "Storage", "BlockedOnIO", f"{jobs}/loader")
    container = {"command": command("loading", "/data")}
    with single_node.pod(jobs, "node1", "loader", {"/data": data_file}, **container):
        time.sleep(_STARTED_S)
        with (
            fault_run("slow volume of one pod", single_node, expected) as story,
            throttled_reads(single_node, jobs, "loader", data_file),
        ):
            story.start()


@contextmanager
def throttled_reads(watched: Release, namespace: str, pod: str, file: Path) -> Iterator[None]:
    """The reads of a pod's containers from the disk of a file, to 1 MiB a second."""
    found = watched.kube.get("v1", "Pod", pod, namespace) or {}
    limits = _limits(watched.cluster, found["metadata"]["uid"])
    disk = disk_of(file)
    try:
        for limit in limits:
            limit.write_text(f"{disk} {_SLOW_BYTES}")
        yield
    finally:
        for limit in limits:
            if limit.exists():
                limit.write_text(f"{disk} 0")


def _limits(cluster: Cluster, uid: str) -> list[Path]:
    if not _BLKIO.is_dir():
        pytest.skip("the kernel's blkio controller is not mounted apart (cgroup v2)")
    found = list(_BLKIO.glob(f"reveal-node*/kubepods/**/pod{uid}/*/blkio.throttle.read_bps_device"))
    assert found, f"no cgroup of pod {uid}"
    return found
