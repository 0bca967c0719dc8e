"""The operator, its kinds, its profiles and the API server end and come back."""

from __future__ import annotations

import time

import pytest

from reveal_contract.kube.names import (
    API_VERSION,
    LABEL_PROFILE,
    PROFILE_KIND,
    REPORT_KIND,
)
from support.api_server import wait_for
from support.operator_harness import (
    NAMESPACE,
    QUIET_S,
    ROOT,
    OperatorHarness,
    a_report,
    ask,
    reasons,
    statuses,
    versions,
)

pytestmark = pytest.mark.timeout(240)
STOP_S = 2.0


@pytest.mark.parametrize("how", ["Background", "Foreground"])
def test_deleting_a_profile_deletes_its_objects(stage: OperatorHarness, how: str) -> None:
    name = stage.apply({"analyzer": {"replicas": 2}})
    found = stage.reconciled(name)
    report = a_report(stage, found, "open", "Open")
    stage.kube.delete(found, how)

    def gone() -> bool:
        left = [
            (kind, item["metadata"]["name"])
            for kind, version in (
                ("ConfigMap", "v1"), ("DaemonSet", "apps/v1"), ("Deployment", "apps/v1"),
                ("PodDisruptionBudget", "policy/v1"),
            )
            for item in stage.kube.items(version, kind, NAMESPACE, f"{LABEL_PROFILE}={name}")
        ]  # fmt: skip
        assert not left, left
        assert stage.kube.get(API_VERSION, PROFILE_KIND, name) is None
        return stage.kube.get(API_VERSION, REPORT_KIND, report) is None

    wait_for(gone, 60, "nothing is left")


def test_a_restart_writes_nothing(stage: OperatorHarness) -> None:
    name = stage.apply({"analyzer": {"replicas": 2}})
    stage.reconciled(name)
    early = {"Pending", "Starting"}  # children not seen yet, pods not looked at yet
    wait_for(lambda: not early & reasons(stage), 60, "what is missing has been looked at")
    stage.settle()
    for end in (stage.operator.kill, lambda: stage.operator.stop(10)):
        versions_before, statuses_before = versions(stage), statuses(stage)
        since = stage.audited()
        end()
        stage.operator.start()
        wait_for(lambda: ask("/readyz") == 200, 30, "ready")
        visits = 'reveal_operator_reconcile_total{result="done"}'
        count = len(stage.kube.items(API_VERSION, PROFILE_KIND))
        wait_for(lambda v=visits, n=count: stage.metric(v) >= n, 30, "all visited")
        time.sleep(QUIET_S)
        # what was refused is tried once more: it may do now
        wrote = [write for write in stage.writes(since) if "immutable" not in write[2]]
        for profile, status in statuses(stage).items():
            assert status == statuses_before[profile]
        assert wrote == []
        assert versions(stage) == versions_before


def test_the_operator_stops_in_time(stage: OperatorHarness) -> None:
    pid, began = stage.operator.pid, time.monotonic()
    assert pid
    stage.operator.stop(10)
    took = time.monotonic() - began
    print(f"ended after {took:.2f} s")
    log_tail = stage.operator.tail()
    stage.operator.start()
    wait_for(lambda: ask("/readyz") == 200, 30, "ready")
    assert took < STOP_S, log_tail
    assert "Traceback" not in log_tail


def test_the_definitions_may_be_deleted_and_recreated(stage: OperatorHarness) -> None:
    crds = sorted((ROOT / "crds").glob("*.yaml"))
    definitions = stage.kube.items("apiextensions.k8s.io/v1", "CustomResourceDefinition")
    for definition in definitions:
        stage.kube.delete(definition)
    wait_for(
        lambda: not stage.kube.items("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
        60, "no kinds, and nothing that hangs",
    )  # fmt: skip
    wait_for(lambda: ask("/readyz") == 503, 60, "not ready")
    assert ask("/healthz") == 200
    stage.kube.install(*crds)
    name = stage.apply()
    wait_for(lambda: ask("/readyz") == 200, 60, "ready again")
    stage.reconciled(name)


def test_the_api_server_may_crash(stage: OperatorHarness) -> None:
    name = stage.apply()
    stage.reconciled(name)
    stage.plane.kill()
    time.sleep(2)
    stage.plane.resume()
    child = stage.daemon_set(name)
    stage.kube.delete(child)
    wait_for(lambda: stage.child("DaemonSet", "collector", name), 30, "back")
    assert stage.operator.running
    assert ask("/healthz") == 200
