"""The operator with the chart's flags and rights, and every order of taking all of it away."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cluster.daemons import Daemon, free_ports
from reveal_contract import VERSION
from reveal_contract.names import REDIS_VARIABLE
from support.api_server import condition, wait_for
from support.chart_releases import PATIENCE_S, Cluster
from support.component_processes import answer
from support.helm_chart import CHART, NAMESPACE, ROOT

CONDITIONS = (
    "Ready", "SpecAccepted", "CollectorsAvailable", "AnalyzerAvailable", "StreamReachable",
    "NodesReporting", "Degraded", "Learning", "FindingsRecur",
)  # fmt: skip
REDIS = ("--set", "redis.url=redis://redis.example.com:6379/0")


def ports() -> tuple[list[str], int]:
    """Flags for ports that are free on this machine, and the one of the health page."""
    metrics, health = free_ports(2)
    chosen = f"operator.metricsPort={metrics},operator.healthPort={health}"
    return ["--set", chosen], health


def has_children(cluster: Cluster, profile: str) -> bool:
    expected = {
        ("DaemonSet", f"reveal-collector-{profile}"),
        ("Deployment", f"reveal-analyzer-{profile}"),
        ("ConfigMap", f"reveal-settings-{profile}"),
    }
    return cluster.children(profile) == expected


def await_children(cluster: Cluster, operator: Daemon, profile: str) -> None:
    try:
        wait_for(lambda: has_children(cluster, profile), PATIENCE_S, "children of the profile")
    except AssertionError as error:
        raise AssertionError(f"{error}; the operator's log ends:\n{operator.tail()}") from None


def test_install_and_a_minimal_profile_suffice(fresh: Cluster) -> None:
    flags, health = ports()
    fresh.upgrade(*REDIS, *flags)
    [minimal] = fresh.kube.apply(ROOT / "examples" / "minimal.yaml", manager="kubectl")
    name = minimal["metadata"]["name"]
    with fresh.operator() as operator:
        await_children(fresh, operator, name)
        wait_for(lambda: answer(health, "/readyz")[0] == 200, PATIENCE_S, "ready")

        def has_no_nodes() -> bool:  # there are no nodes here
            return condition(fresh.profile(name), "Ready").get("reason") == "NoNodes"

        wait_for(has_no_nodes, PATIENCE_S, "Ready says NoNodes")
        assert "forbidden" not in operator.log.read_text().lower()
    profile = fresh.profile(name)
    assert all(condition(profile, each).get("status") for each in CONDITIONS)
    assert condition(profile, "SpecAccepted")["status"] == "True"
    assert condition(profile, "Ready")["status"] == "False"
    collector = fresh.kube.get("apps/v1", "DaemonSet", f"reveal-collector-{name}", NAMESPACE)
    assert collector is not None
    pod = collector["spec"]["template"]["spec"]
    assert pod["serviceAccountName"] == "reveal-collector"
    assert pod["containers"][0]["image"] == f"reveal-collector:{VERSION}"
    variables = {each["name"]: each.get("value") for each in pod["containers"][0]["env"]}
    assert variables[REDIS_VARIABLE] == "redis://redis.example.com:6379/0"


def test_helm_test_succeeds_or_names_the_problem(fresh: Cluster, tmp_path: Path) -> None:
    flags, health = ports()
    fresh.upgrade(*REDIS, *flags)
    script = (CHART / "files" / "check.py").read_text()
    token = fresh.plane.token(NAMESPACE, "reveal-operator")
    (tmp_path / "token").write_text(token)
    (tmp_path / "ca.crt").write_bytes(fresh.plane.authority.read_bytes())

    def check(port: int) -> subprocess.CompletedProcess[str]:
        url = f"http://127.0.0.1:{port}/readyz"
        return subprocess.run(
            [sys.executable, "-c", script, url, fresh.plane.url, tmp_path],
            capture_output=True, text=True, timeout=PATIENCE_S, check=False,
        )  # fmt: skip

    with fresh.operator():
        fresh.apply_profile("seen")
        wait_for(lambda: answer(health, "/readyz")[0] == 200, PATIENCE_S, "ready")
        well = check(health)
        assert well.returncode == 0, well.stderr
        assert well.stdout == "operator ready, custom resources served, profiles: seen\n"
        fresh.delete_definitions()
        wait_for(lambda: check(health).returncode != 0, PATIENCE_S, "missing kinds are told")


def release(cluster: Cluster) -> None:
    cluster.uninstall()


def profile(cluster: Cluster) -> None:
    cluster.delete_profile("doomed")


def namespace(cluster: Cluster) -> None:
    cluster.delete_namespace()
    wait_for(lambda: not cluster.has_namespace(), PATIENCE_S, "the namespace is gone")


def definitions(cluster: Cluster) -> None:
    cluster.delete_definitions()


@pytest.mark.parametrize(
    "order",
    [
        (profile, release, namespace, definitions),
        (release, profile, definitions, namespace),
        (release, namespace, definitions, profile),
        (namespace, profile, definitions),
        (definitions, release, namespace),
        (definitions, namespace),
        (profile, definitions, namespace),
    ],
    ids=lambda order: "-".join(step.__name__ for step in order),
)
@pytest.mark.parametrize("running", [True, False], ids=["operator-lives", "operator-is-gone"])
def test_uninstalling_in_any_order_never_hangs(
    fresh: Cluster, order: tuple[Callable[[Cluster], None], ...], running: bool
) -> None:
    flags, _ = ports()
    fresh.upgrade(*REDIS, *flags)
    with fresh.operator() as operator:
        fresh.apply_profile("doomed")
        await_children(fresh, operator, "doomed")
        if not running:
            operator.kill()
        for step in order:
            step(fresh)
        fresh.await_nothing_left()


def test_owned_objects_are_deleted_without_the_operator(fresh: Cluster) -> None:
    flags, _ = ports()
    fresh.upgrade(*REDIS, *flags)
    with fresh.operator() as operator:
        fresh.apply_profile("orphaned")
        await_children(fresh, operator, "orphaned")
    fresh.uninstall()
    fresh.delete_profile("orphaned")
    wait_for(lambda: not fresh.children("orphaned"), PATIENCE_S, "no child is left")
