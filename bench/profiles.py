"""What an operator takes at a large cluster: 1,000 nodes, 50 profiles, on a real API server.

The nodes are objects only: controllers make a pod of a collector for each, nothing runs them.
The operator is a process of its own with all rights; requests are counted in the audit log.  The
control plane is that of the end-to-end tests (``make assets``), on this machine, and shares its
cores.
"""

import argparse
import contextlib
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmark_report import Row, report

ROOT = Path(__file__).parents[1]
sys.path += [str(ROOT / "e2e"), str(ROOT / "tests")]

from cluster import binaries, plane  # noqa: E402 - two folders that are on the path now
from cluster.daemons import Daemon, free_ports  # noqa: E402
from reveal_contract.kube.names import API_VERSION, OPERATOR_MANAGER, PROFILE_KIND  # noqa: E402
from support.api_server import Kube, condition, wait_for  # noqa: E402

NAMESPACE = "reveal-system"
POOL = "pool"
WRITES = ("create", "patch", "update", "delete")
_READY_S, _ACCEPTED_S, _SETTLE_S = 60.0, 300.0, 20.0
_RATE = "reveal_operator_reconcile_seconds"


@dataclass
class Cluster:
    """A control plane with an operator; ``port`` serves its metrics."""

    plane: plane.ControlPlane
    kube: Kube
    operator: Daemon
    port: int

    def metrics(self) -> dict[str, float]:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        samples = (line.rpartition(" ") for line in lines if not line.startswith("#"))
        return {name: float(value) for name, _, value in samples}

    def requests(self, since: int = 0) -> list[str]:
        """The verbs of what the operator asked for, after so many requests of anybody's."""
        asked = self.plane.audited()[since:]
        ours = (OPERATOR_MANAGER, "kopf")
        return [item["verb"] for item in asked if item.get("userAgent", "").startswith(ours)]


@contextlib.contextmanager
def cluster() -> Iterator[Cluster]:
    port, health = free_ports(2)
    with (
        plane.running(plane.Options(audit=True)) as running,
        tempfile.TemporaryDirectory() as folder,
    ):
        kube = Kube(running.kubeconfig)
        kube.install(*sorted((ROOT / "crds").glob("*.yaml")))
        kube.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        for account in ("reveal-collector", "reveal-analyzer"):  # without them no pod is made
            about = {"name": account, "namespace": NAMESPACE}
            kube.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": about})
        flags = (
            "--kubeconfig", str(running.kubeconfig), "--namespace", NAMESPACE,
            "--redis-url", "redis://redis.example:6379/0",
            "--metrics-port", str(port), "--health-port", str(health),
        )  # fmt: skip
        command = (sys.executable, "-m", "reveal_operator", *flags)
        operator = Daemon("operator", command, Path(folder) / "log")
        operator.start()
        try:
            yield Cluster(running, kube, operator, port)
        finally:
            operator.stop()


def make_nodes(kube: Kube, nodes: int, pools: int) -> None:
    for number in range(nodes):
        about = {"name": f"node-{number:04d}", "labels": {POOL: str(number % pools)}}
        node = kube.create({"apiVersion": "v1", "kind": "Node", "metadata": about})
        # a new node is tainted until its kubelet says that it is ready; there is none
        kube.patch(node, {"spec": {"taints": None}})


def make_profiles(kube: Kube, profiles: int) -> None:
    for number in range(profiles):
        body = {"apiVersion": API_VERSION, "kind": PROFILE_KIND}
        spec = {"nodeSelector": {POOL: str(number)}}
        kube.create({**body, "metadata": {"name": f"pool-{number:02d}"}, "spec": spec})


def is_accepted(kube: Kube, profiles: int, nodes: int) -> bool:
    """Whether every profile says that it has children, and all nodes are counted."""
    found = [profile.get("status", {}) for profile in kube.items(API_VERSION, PROFILE_KIND)]
    conditions = [condition({"status": item}, "SpecAccepted") for item in found]
    accepted = sum(item.get("status") == "True" for item in conditions)
    return accepted == profiles and sum(item.get("desiredNodes", 0) for item in found) == nodes


def quantile(metrics: dict[str, float], share: float) -> float:
    """The upper edge of the bucket that holds this share of all visits, s."""
    count = metrics[f"{_RATE}_count"]
    edges = sorted(
        (float(name.split('le="')[1].split('"')[0]), value)
        for name, value in metrics.items()
        if name.startswith(f"{_RATE}_bucket") and "+Inf" not in name
    )
    return next((edge for edge, value in edges if value >= share * count), float("inf"))


def rss(metrics: dict[str, float]) -> float:
    return metrics["process_resident_memory_bytes"] / 2**20


def measure(system: Cluster, nodes: int, profiles: int, idle: float) -> list[Row]:
    wait_for(lambda: system.metrics()["reveal_operator_watching"] == 1, _READY_S, "watching")
    empty = rss(system.metrics())
    make_nodes(system.kube, nodes, profiles)
    began = time.monotonic()
    make_profiles(system.kube, profiles)
    wait_for(
        lambda: is_accepted(system.kube, profiles, nodes),
        _ACCEPTED_S,
        "all profiles say their nodes",
    )
    until_accepted = time.monotonic() - began
    time.sleep(_SETTLE_S)  # pods of a thousand nodes are made twenty a second
    while len(system.kube.items("v1", "Pod", NAMESPACE)) < nodes:
        time.sleep(1)
    time.sleep(_SETTLE_S)
    before, mark = system.metrics(), len(system.plane.audited())
    time.sleep(idle)
    after, asked = system.metrics(), system.requests(mark)
    cpu = after["process_cpu_seconds_total"] - before["process_cpu_seconds_total"]
    written = [verb for verb in asked if verb in WRITES]
    rows: list[tuple[str, float, str]] = [
        ("memory of the operator, nothing there", empty, "MiB"),
        (f"with {nodes} nodes and {profiles} profiles", rss(after), "MiB"),
        ("from the first profile until all say their nodes", until_accepted, "s"),
        ("a visit, median at most", quantile(after, 0.5), "s"),
        ("a visit, p99 at most", quantile(after, 0.99), "s"),
        ("visits", after[f"{_RATE}_count"], ""),
        ("requests a minute when idle", len(asked) * 60 / idle, ""),
        ("of them writes", len(written) * 60 / idle, ""),
        ("CPU when idle", 100 * cpu / idle, "% of a core"),
    ]
    return [{"what": what, "value": value, "unit": unit} for what, value, unit in rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--profiles", type=int, default=50)
    parser.add_argument("--idle", type=float, default=120.0, metavar="SECONDS")
    given = parser.parse_args()
    if absent := binaries.missing(binaries.RUNNING):
        print(f"not measured, no {', '.join(absent)}: `make assets` builds them")
        return
    with cluster() as system:
        rows = measure(system, given.nodes, given.profiles, given.idle)
    report("profiles", rows, nodes=given.nodes, profiles=given.profiles)


if __name__ == "__main__":
    main()
