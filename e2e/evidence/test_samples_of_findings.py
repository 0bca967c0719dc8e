"""Samples of a finding on real nodes, read through the API server with the rights of a user."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from reveal_cli.recordings import Slices
from reveal_contract.kube.names import ANALYZER, METRICS_PORT, SAMPLES_PORT, child_name
from support.api_server import unique, wait_for
from support.cluster_release import NAMESPACE, PROFILE, Release, now, rolled_out
from support.faulty_pods import quota, throttled
from support.html_pages import ParsedPage
from support.lasting_fault import reported

pytestmark = pytest.mark.timeout(600)

NODE = "node2"
RBAC = "rbac.authorization.k8s.io"
_KEPT_S, _COMPLETE_S, _LASTS_S, _FORGOTTEN_S = 60.0, 150.0, 20.0, 180.0


@pytest.fixture(scope="module")
def resolved(three_nodes: Release, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The report of a pod that was throttled; the analyzers were replaced since."""
    namespace = unique("jobs")
    manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    three_nodes.kube.create(manifest)
    wait_for(
        lambda: three_nodes.kube.get("v1", "ServiceAccount", "default", namespace), 30, "an account"
    )
    since = now()
    with throttled(three_nodes, namespace, NODE):
        report = reported(three_nodes, quota(NODE, namespace), since)
        report.follow(_LASTS_S)
    report.check_resolved()
    wait_for(
        lambda: three_nodes.report(report.name)["status"].get("evidenceRef"), _KEPT_S, "samples"
    )
    analyzers = f"deployment/{child_name(ANALYZER, PROFILE)}"
    three_nodes.cluster.kubectl("-n", NAMESPACE, "rollout", "restart", analyzers)
    rolled_out(three_nodes.cluster, analyzers)
    three_nodes.kube.delete(manifest)
    return report.name


@pytest.fixture
def user(three_nodes: Release, tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A service account that may read reports, and its kubeconfig."""
    name = unique("user")
    about = {"name": name, "namespace": "default"}
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": about}
    binding = {
        "apiVersion": f"{RBAC}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "reveal-view"},
        "subjects": [{"kind": "ServiceAccount", **about}],
    }  # fmt: skip
    three_nodes.kube.create(account, namespace="default")
    three_nodes.kube.create(binding)
    token = three_nodes.cluster.kubectl("-n", "default", "create", "token", name).strip()
    config = yaml.safe_load(three_nodes.cluster.kubeconfig.read_text())
    config["users"] = [{"name": each["name"], "user": {"token": token}} for each in config["users"]]
    path = tmp_path / "kubeconfig"
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(config))
    yield name, path
    three_nodes.kube.delete(binding)
    three_nodes.kube.delete(account)


def _run(kubeconfig: Path, *words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "reveal_cli.kubectl", "--kubeconfig", str(kubeconfig),
         *map(str, words)],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


def _permit(watched: Release, user: str) -> None:
    watched.kube.create({
        "apiVersion": f"{RBAC}/v1", "kind": "RoleBinding",
        "metadata": {"name": user, "namespace": NAMESPACE},
        "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "reveal-samples"},
        "subjects": [{"kind": "ServiceAccount", "name": user, "namespace": "default"}],
    })  # fmt: skip


def test_a_finding_has_its_samples_when_pod_and_analyzer_are_gone(
    three_nodes: Release, resolved: str, user: tuple[str, Path], tmp_path: Path
) -> None:
    name, config = user
    _permit(three_nodes, name)
    recording, page = tmp_path / "slow.rvl", tmp_path / "slow.html"

    def is_complete() -> bool:
        done = _run(config, "evidence", resolved, "-f", recording)
        assert done.returncode == 0, done.stderr
        fine = [message.start_ns for message, _ in Slices(recording) if len(message.fast) == 10]
        assert len(fine) >= 100, f"{len(fine)} s, from {fine[:1]} to {fine[-1:]}"
        return True

    # those of the minute after the end come later
    wait_for(is_complete, _COMPLETE_S, "100 seconds of samples of 100 ms")
    done = _run(config, "report", resolved, "-f", page)
    assert done.returncode == 0, done.stderr
    parsed = ParsedPage(page.read_text())
    assert "throttled" in parsed.visible
    assert [each for each in parsed.all("figure") if each.attributes["class"] == "chart"]


def test_the_span_of_a_finding_is_explained_when_the_stream_has_forgotten_it(
    three_nodes: Release, resolved: str, user: tuple[str, Path], tmp_path: Path
) -> None:
    name, config = user
    _permit(three_nodes, name)
    item = three_nodes.report(resolved)
    begin, end = item["spec"]["firstSeenTime"], item["status"]["resolvedTime"]
    is_forgotten = datetime.fromisoformat(begin) + timedelta(seconds=_FORGOTTEN_S)
    wait_for(lambda: datetime.now(UTC) > is_forgotten, _FORGOTTEN_S, "the stream has forgotten it")
    done = _run(config, "explain", NODE, "--span", f"{begin}/{end}", "-o", "json")
    assert done.returncode == 0, done.stderr
    # a pod that starts moves much of the network for a moment, too
    first = [row["metric"] for row in json.loads(done.stdout)["ranking"][:25]]
    assert "cpu.subject.throttled_time" in first
    recording = tmp_path / "history.rvl"
    done = _run(config, "history", NODE, "--span", f"{begin}/{end}", "-f", recording)
    assert done.returncode == 0, done.stderr
    assert {len(message.fast) for message, _ in Slices(recording)} == {1}


def test_the_frame_of_a_node_is_displayed(three_nodes: Release, user: tuple[str, Path]) -> None:
    name, config = user
    _permit(three_nodes, name)
    done = _run(config, "top", NODE)
    assert done.returncode == 0, done.stderr
    first, *others = done.stdout.splitlines()
    assert first.startswith(f"reveal · {NODE}")
    assert [line for line in others if line.startswith("Lost time of the last 10 s")]


def test_without_the_role_there_is_a_sentence(
    resolved: str, user: tuple[str, Path], tmp_path: Path
) -> None:
    _, config = user
    done = _run(config, "evidence", resolved, "-f", tmp_path / "slow.rvl")
    assert (done.returncode, done.stdout) == (1, "")
    [line] = done.stderr.splitlines()
    assert "you may not list pods" in line
    assert "the Role reveal-samples" in line
    assert list(tmp_path.glob("*.rvl")) == []


def test_other_pods_cannot_read_samples(three_nodes: Release) -> None:
    """The endpoint listens on the loopback address of the pod."""
    pods = three_nodes.kube.items("v1", "Pod", labels="app.kubernetes.io/component=analyzer")
    addresses = [pod["status"]["podIP"] for pod in pods if pod["status"]["phase"] == "Running"]
    assert addresses
    for address in addresses:
        script = (
            f"for port in {METRICS_PORT} {SAMPLES_PORT}; do"
            f" (exec 3<>/dev/tcp/{address}/$port) 2>/dev/null && echo $port; done; true"
        )
        found = three_nodes.cluster.execute(NODE, "bash", "-c", script)
        assert found.split() == [str(METRICS_PORT)]
