"""Ten thousand AnomalyReports on a real API server: how large, how fast listed, what etcd takes.

Findings are those of the recordings of the fault bench (``DIR...``), each
many times over under other names; without recordings one is made up.  The control plane is that
of the end-to-end tests (``make assets``), on this machine: its latencies are not a cluster's.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from benchmark_report import Row, report

ROOT = Path(__file__).parents[1]
sys.path += [str(ROOT / "e2e"), str(ROOT / "tests")]

from cluster import binaries, plane  # noqa: E402 - two folders that are on the path now
from faultbench.sessions import sessions  # noqa: E402
from reveal_analyzer.node import NodeAnalyzer  # noqa: E402
from reveal_analyzer.sinks.kube.api import KubernetesApi, connect  # noqa: E402
from reveal_contract.finding import Evidence, Finding, FindingChange, Hypothesis, Severity, State  # noqa: E402
from reveal_contract.kube.anomaly_report import MAX_BYTES, ReportOwner  # noqa: E402
from reveal_contract.kube.anomaly_report import report as report_of  # noqa: E402
from reveal_contract.kube.names import API_VERSION, PROFILE_KIND  # noqa: E402
from reveal_contract.metric import Subsystem  # noqa: E402
from reveal_contract.settings import AnalyzerSettings  # noqa: E402
from support.api_server import Kube  # noqa: E402

COUNT, PROFILE = 10_000, "bench"
_TIMED = 1000  # writes timed at the beginning, and at the end


def findings_of(directories: Sequence[Path]) -> list[Finding]:
    """Every state of every finding of the recordings."""
    found = []
    for session in (session for directory in directories for session in sessions(directory)):
        analyzer = NodeAnalyzer("node", AnalyzerSettings())
        for item in session.read():
            updates = analyzer.analyze(item.message, item.table)
            found += [u.finding for u in updates if u.change is not FindingChange.SUSPECTED]
    return found or [_example_finding()]


def _example_finding() -> Finding:
    item = tuple(
        Evidence(f"cpu.metric{n}", "level", "", "123.4", "1.2", "ns/s", "up", "user")
        for n in range(6)
    )
    return Finding(
        "cpu-0123456789", "node", Subsystem.CPU, Severity.HIGH, State.OPEN, 1, 2, "CPU " * 30,
        evidence=item, hypothesis=Hypothesis("CPUContention", 80, "move the neighbour " * 4),
    )  # fmt: skip


def named(findings: Sequence[Finding]) -> Iterator[Finding]:
    """As findings of many nodes, without end."""
    for number, finding in enumerate(cycle(findings)):
        identity = f"{finding.subsystem.value.lower()}-{number:010x}"
        yield replace(finding, id=identity, node_name=f"gpu-node-{number % 1000:04d}.example.com")


def write(api: KubernetesApi, findings: Sequence[Finding], owner: ReportOwner) -> list[float]:
    """Milliseconds for each: created, then its status."""
    taken = []
    for finding in findings:
        desired = report_of(finding, PROFILE, owner.generation)
        began = time.perf_counter()
        api.create_report(desired.to_create(owner))
        api.apply_report_status(desired.name, desired.to_apply())
        taken.append((time.perf_counter() - began) * 1e3)
    return taken


def seconds(call: Callable[[], object], rounds: int = 5) -> float:
    """Median of wall time: most of it is spent in the server."""
    taken = []
    for _ in range(rounds):
        began = time.perf_counter()
        call()
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


def sizes(kube: Kube, path: str) -> tuple[list[int], list[int]]:
    """Bytes of each report as JSON, without and with what the server says of who wrote what."""
    bare, whole = [], []
    for item in kube.request("GET", path, query={"limit": "2000"})["items"]:
        whole.append(_bytes(item))
        del item["metadata"]["managedFields"]
        bare.append(_bytes(item))
    return bare, whole


def _bytes(item: Any) -> int:
    return len(json.dumps(item, ensure_ascii=False, separators=(",", ":")).encode())


def measure(kube: Kube, running: plane.ControlPlane, findings: Sequence[Finding]) -> list[Row]:
    api = connect(running.kubeconfig)
    found = api.profile(PROFILE)["metadata"]
    owner = ReportOwner(PROFILE, found["uid"], 1)
    before = _stored(running)
    taken = write(api, list(islice(named(findings), COUNT)), owner)
    path = f"/apis/{API_VERSION}/anomalyreports"
    bare, whole = sizes(kube, path)
    grown = _stored(running) - before
    rows: list[tuple[str, float, str]] = [
        ("findings of the recordings", len(findings), ""),
        ("report, median", statistics.median(bare), "bytes"),
        ("report, p99", statistics.quantiles(bare, n=100)[98], "bytes"),
        ("report, largest allowed", MAX_BYTES, "bytes"),
        ("with managedFields, p99", statistics.quantiles(whole, n=100)[98], "bytes"),
        ("create and status, first thousand, median", statistics.median(taken[:_TIMED]), "ms"),
        ("create and status, last thousand, median", statistics.median(taken[-_TIMED:]), "ms"),
        ("create and status, p99", statistics.quantiles(taken, n=100)[98], "ms"),
        ("list of all, one request", seconds(lambda: kube.request("GET", path)), "s"),
        ("list of 500, the first page",
         seconds(lambda: kube.request("GET", path, query={"limit": "500"})), "s"),
        ("what is open, as an analyzer that starts asks", seconds(
            lambda: sum(1 for _ in api.open_reports(PROFILE))), "s"),
        ("etcd grew by", grown / 2**20, "MiB"),
    ]  # fmt: skip
    return [{"what": what, "value": value, "unit": unit} for what, value, unit in rows]


def _stored(running: plane.ControlPlane) -> int:
    return sum(path.stat().st_size for path in running.folder.rglob("db"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recordings", type=Path, nargs="*", help="directories of bench/faults")
    directories = parser.parse_args().recordings
    if absent := binaries.missing(binaries.NEEDED):
        print(f"not measured, no {', '.join(absent)}: `make assets` builds them")
        return
    findings = findings_of(directories)
    with plane.running(plane.Options(controllers=False)) as running:
        kube = Kube(running.kubeconfig)
        kube.install(*sorted((ROOT / "crds").glob("*.yaml")))
        profile = {"apiVersion": API_VERSION, "kind": PROFILE_KIND, "metadata": {"name": PROFILE}}
        kube.create({**profile, "spec": {}})
        rows = measure(kube, running, findings)
    report("reports", rows, reports=COUNT)


if __name__ == "__main__":
    main()
