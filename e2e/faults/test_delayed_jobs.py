"""A rank of a Job on three nodes that the other ranks wait for."""

from __future__ import annotations

import logging
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.api_server import Object, wait_for
from support.cluster_release import Release, cause, summary
from workloads import command

pytestmark = pytest.mark.timeout(600)

log = logging.getLogger(__name__)

_RANKS = 3
_STARTED_S = 120.0  # until the rhythm of the ranks is known
_OPENS_S, _ENDS_S = 50.0, 60.0
_CAUSES = ("StragglingRank", "CPUQuotaThrottling")
_QUOTA_US = 5_000  # of 100 ms
_CPU = Path("/sys/fs/cgroup/cpu")


@pytest.fixture
def detailed(three_nodes: Release) -> Iterator[Release]:
    """Collectors that may read fine clocks on a busy machine.

    There are three of them on one kernel, and each reads what all nodes do: what a collector may
    use by default is little for that, and without these clocks no step time is known.
    """
    three_nodes.change(collector={"cpuBudgetMillicores": 100})
    yield three_nodes
    three_nodes.change(collector=None)


@pytest.fixture
def ranks(detailed: Release, jobs: str, tmp_path: Path) -> Iterator[list[Object]]:
    """The pods of an indexed Job, one on each node; they know each other."""
    tmp_path.chmod(0o755)
    job = _job(detailed.cluster.image("reveal-workload"), jobs, tmp_path)
    detailed.kube.create(job)

    def pods() -> list[Object]:
        found = detailed.kube.items("v1", "Pod", jobs, labels="job-name=train")
        return [pod for pod in found if pod["status"]["phase"] == "Running"]

    wait_for(lambda: len(pods()) == _RANKS, 90, "all ranks run")
    time.sleep(_STARTED_S)
    yield pods()
    detailed.kube.delete(job)


def test_the_rank_that_delays_its_job_is_reported(
    detailed: Release, ranks: list[Object], jobs: str
) -> None:
    detailed.calm()
    slow = next(pod for pod in ranks if pod["spec"]["nodeName"] == "node3")
    began, name = time.monotonic(), f"{jobs}/Job/train"

    def of_job() -> list[Object]:
        """The reports of the job: their first window may begin before the fault."""
        found = (item for item in detailed.reports() if item["spec"]["scope"] == "Job")
        return [item for item in found if item["status"]["delayedJob"]["name"] == name]

    def delayed() -> Object | None:
        return next(iter(of_job()), None)

    with throttled(slow):
        try:
            wait_for(delayed, _OPENS_S, "a report of the job")
        except AssertionError as late:
            raise AssertionError(f"{late}\n{_state(detailed)}") from None
        log.info("reported after %.0f s", time.monotonic() - began)
        report = delayed()
    assert report is not None
    status = report["status"]
    log.info("%s", summary(report))
    assert (report["spec"]["nodeName"], cause(report)) == ("node3", "StragglingRank")
    assert [pod["name"] for pod in status["pods"]] == [slow["metadata"]["name"]]
    assert status["delayedJob"]["ranks"] == _RANKS
    wait_for(lambda: not _of_fault(detailed), _ENDS_S, "no report of the fault is open")
    assert len(of_job()) == 1, list(map(summary, of_job()))


def _of_fault(watched: Release) -> list[Object]:
    """Return the open reports of the fault; nodes that share a host may have others."""
    return [
        report for report in watched.reports()
        if report["status"]["state"] != "Resolved" and cause(report) in _CAUSES
    ]  # fmt: skip


def _state(watched: Release) -> str:
    """What is known of the ranks on each node."""
    parts = [f"telemetry: {watched.telemetry}", f"open: {watched.open()}"]
    for node in watched.cluster.nodes:
        done = subprocess.run(
            [sys.executable, "-m", "reveal_cli.kubectl", "--kubeconfig",
             str(watched.cluster.kubeconfig), "top", node],
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        parts.append(done.stdout + done.stderr)
    return "\n".join(parts)


@contextmanager
def throttled(pod: Object) -> Iterator[None]:
    """A CPU quota for all containers of a pod, as an administrator sets it."""
    if not _CPU.is_dir():
        pytest.skip("the kernel's cpu controller is not mounted apart (cgroup v2)")
    uid = pod["metadata"]["uid"]
    [quota] = _CPU.glob(f"reveal-node*/kubepods/**/pod{uid}/cpu.cfs_quota_us")
    quota.write_text(f"{_QUOTA_US}")
    try:
        yield
    finally:
        if quota.exists():
            quota.write_text("-1")


def _job(image: str, namespace: str, folder: Path) -> Object:
    labels = {"app": "train"}
    apart = {
        "labelSelector": {"matchLabels": labels},
        "topologyKey": "kubernetes.io/hostname",
    }
    container = {
        "name": "main", "image": image,
        "command": command("barrier", "/shared", str(_RANKS)),
        "volumeMounts": [{"name": "shared", "mountPath": "/shared"}],
    }  # fmt: skip
    return {
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": "train", "namespace": namespace},
        "spec": {
            "completionMode": "Indexed", "completions": _RANKS, "parallelism": _RANKS,
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "restartPolicy": "OnFailure", "terminationGracePeriodSeconds": 1,
                    "affinity": {"podAntiAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": [apart],
                    }},
                    "containers": [container],
                    "volumes": [{"name": "shared", "hostPath": {"path": str(folder)}}],
                },
            },
        },
    }  # fmt: skip
