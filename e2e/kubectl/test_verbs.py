"""``kubectl reveal`` on a real API server: with the rights of the chart's roles, and with none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from cluster import plane
from cluster.plane import ControlPlane, Options
from reveal_analyzer.sinks.kube import backoff, sink
from reveal_contract.costs import Cost, PodCost
from reveal_contract.finding import Severity
from reveal_contract.kube.names import API_VERSION, LABEL_PROFILE, REPORT_KIND
from support import finding_factory
from support.api_objects import apply_status, report_of
from support.api_server import condition, unique, wait_for
from support.api_server_sink import ApiServerSink
from support.chart_releases import Cluster
from support.finding_factory import changed, opened, resolved
from support.helm_chart import program
from support.kubectl import kubectl

RBAC = "rbac.authorization.k8s.io"
NAMESPACE = "default"  # of the users' service accounts
# users by the ClusterRoles that they have
USERS = {"reader": ("reveal-view",), "silencer": ("reveal-view", "reveal-silence"), "nobody": ()}
HOSTILE = "\x1b]0;owned\x07\u202egnp.exe"


class Result(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A control plane with the chart's definitions and roles, and a user for each role."""
    with plane.running(Options()) as running:
        created = Cluster(running, program(), tmp_path_factory.mktemp("kubectl"))
        created.upgrade("--set", "redis.url=redis://redis.example:6379/0")
        for user, roles in USERS.items():
            _create_user(created, user, roles)
        yield created


@pytest.fixture(scope="module")
def report(installed: Cluster) -> str:
    """The name of an open report; its claim is hostile, its job is ``training/llm-worker``."""
    found = replace(
        finding_factory.cpu_contention(finding_factory.ONSET_NS),
        cost=Cost(8, 0.8, 1.8, 1.2, 2.4),
        pod_costs=(PodCost("training/llm-worker-3", 1.8),),
    )
    created, applied = report_of(found, "gpu-nodes")
    applied["status"]["claim"] = HOSTILE
    installed.kube.create(created)
    apply_status(installed.kube, applied)
    name: str = created["metadata"]["name"]
    return name


def _create_user(installed: Cluster, user: str, roles: tuple[str, ...]) -> None:
    about = {"name": user, "namespace": NAMESPACE}
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": about}
    installed.kube.create(account, namespace=NAMESPACE)
    for role in roles:
        installed.kube.create({
            "apiVersion": f"{RBAC}/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": f"{user}-{role}"},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "ServiceAccount", **about}],
        })  # fmt: skip


def _run(running: ControlPlane, user: str, *words: str) -> Result:
    """Run the plugin with the rights of a user."""
    config = running.account_kubeconfig(NAMESPACE, user)
    return _plugin("--kubeconfig", str(config), *words)


def _plugin(*words: str) -> Result:
    done = subprocess.run(
        [sys.executable, "-m", "reveal_cli.kubectl", *words],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    return Result(done.returncode, done.stdout, done.stderr)


def _sentence(result: Result) -> str:
    """Return the only line of an error."""
    assert (result.code, result.out) == (1, ""), result
    [line] = result.err.splitlines()
    return line


def test_a_reader_lists_and_explains(installed: Cluster, report: str) -> None:
    listed = _run(installed.plane, "reader")
    assert listed.code == 0, listed.err
    [row] = [line for line in listed.out.splitlines() if line.endswith(report)]
    assert row.startswith("training/llm-worker ")
    for name in ("llm-worker", "training/llm-worker-3", "gpu-07", report):
        explained = _run(installed.plane, "reader", "why", name)
        assert "what to do  Move or limit the subject that grew" in explained.out, explained
    [item] = json.loads(_run(installed.plane, "reader", "why", report, "-o", "json").out)["items"]
    assert item["name"] == report
    assert item["status"]["claim"] == HOSTILE


def test_a_reader_adds_up_costs(installed: Cluster, report: str) -> None:
    title, row = _run(installed.plane, "reader", "cost", "--price", "2").out.splitlines()
    assert title.split() == ["JOB", "GPU-HOURS", "AMOUNT", "FINDINGS", "OPEN", "CAUSES"]
    assert row.split() == ["training/llm-worker", "1.8", "3.60", "1", "1", "CPUContention"]


def test_kubectl_finds_the_plugin(installed: Cluster, report: str, tmp_path: Path) -> None:
    plugin = tmp_path / "kubectl-reveal"
    plugin.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m reveal_cli.kubectl "$@"\n')
    plugin.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "KUBECONFIG": str(installed.plane.account_kubeconfig(NAMESPACE, "reader")),
    }
    done = subprocess.run(
        [str(installed.plane.programs["kubectl"]), "reveal", "why", "llm-worker", "-n", "training"],
        capture_output=True, text=True, check=False, timeout=60, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert report in done.stdout


def test_a_hostile_text_is_inert(installed: Cluster, report: str) -> None:
    printed = _run(installed.plane, "reader", "why", report).out
    assert "\\x1b]0;owned" in printed
    assert all(line.isprintable() for line in printed.splitlines())


def test_a_wrong_name_has_similar_names(installed: Cluster, report: str) -> None:
    line = _sentence(_run(installed.plane, "reader", "why", "lm-worker"))
    assert "did you mean llm-worker" in line
    wrong = ("silence", f"{report}x", "--for", "2h", "--because", "x")
    assert f"did you mean {report}" in _sentence(_run(installed.plane, "silencer", *wrong))


def test_a_reader_may_not_silence(installed: Cluster, report: str) -> None:
    words = ("silence", report, "--for", "2h", "--because", "x")
    line = _sentence(_run(installed.plane, "reader", *words))
    assert "you may not patch AnomalyReports" in line
    assert "reveal-silence" in line


@pytest.mark.parametrize(
    "words", [(), ("why", "gpu-07"), ("cost",), ("silence", "x", "--for", "2h", "--because", "x")]
)
def test_without_rights_there_is_a_sentence(installed: Cluster, words: tuple[str, ...]) -> None:
    line = _sentence(_run(installed.plane, "nobody", *words))
    assert "you may not" in line
    assert "reveal-view" in line


def test_without_reveal_there_is_a_sentence() -> None:
    with plane.running(Options(controllers=False)) as bare:
        line = _sentence(_plugin("--kubeconfig", str(bare.kubeconfig)))
    assert "has no AnomalyReports: Reveal is not installed there" in line


@pytest.mark.timeout(180)
def test_a_silenced_report_has_no_events_and_no_condition(
    installed: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backoff, "LONGEST_S", 0.3)
    monkeypatch.setattr(sink, "ROUND_SECONDS", 0.05)
    monkeypatch.setattr(sink, "SILENCE_SECONDS", 0.2)
    analyzer = ApiServerSink(installed.plane, installed.kube, tmp_path, node_conditions=True)
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": analyzer.node}}
    installed.kube.create(node)
    try:
        _silence_and_wake(installed, analyzer)
    finally:
        analyzer.sink.close()


def _silence_and_wake(installed: Cluster, analyzer: ApiServerSink) -> None:
    analyzer.update(opened(severity=Severity.HIGH))
    wait_for(lambda: _has_condition(analyzer), 20, "the condition of the node")
    [found] = analyzer.reports
    name, because = found["metadata"]["name"], f"ticket {unique('t')}"
    words = ("silence", name, "--for", "2h", "--because", because)
    silenced = _run(installed.plane, "silencer", *words)
    assert silenced.code == 0, silenced.err
    wait_for(lambda: not _has_condition(analyzer), 20, "no condition of the node")
    analyzer.update(changed(severity=Severity.CRITICAL))
    wait_for(lambda: _severity(analyzer) == "Critical", 20, "the report is written")
    analyzer.idle()
    assert analyzer.reasons() == ["AnomalyDetected"]
    _expect_silence_everywhere(installed, name, because)
    assert _run(installed.plane, "silencer", "unsilence", name).code == 0
    wait_for(lambda: _has_condition(analyzer), 20, "the condition of the node again")
    analyzer.update(resolved(severity=Severity.CRITICAL))
    wait_for(lambda: analyzer.reasons()[-1:] == ["AnomalyResolved"], 20, "an Event again")
    assert analyzer.reasons() == ["AnomalyDetected", "AnomalyResolved"]


def _expect_silence_everywhere(installed: Cluster, name: str, because: str) -> None:
    [row] = [line for line in _run(installed.plane, "reader").out.splitlines() if name in line]
    assert "for 1h5" in row or "for 2h00m" in row
    assert because in _run(installed.plane, "reader", "why", name).out
    [item] = json.loads(_run(installed.plane, "reader", "why", name, "-o", "json").out)["items"]
    assert item["silence"]["reason"] == because
    until = f"{item['silence']['until'][:19]}Z"
    assert until in kubectl(installed.plane, "get", "anomalies", name, "-o", "wide")


def _has_condition(analyzer: ApiServerSink) -> bool:
    return bool(condition(analyzer.kube.get("v1", "Node", analyzer.node), "RevealAnomaly"))


def _severity(analyzer: ApiServerSink) -> str:
    selector = f"{LABEL_PROFILE}={analyzer.profile}"
    [found] = analyzer.kube.items(API_VERSION, REPORT_KIND, labels=selector)
    return str(found["status"]["severity"])
