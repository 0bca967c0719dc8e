"""The operator on a real API server: what it says of profiles, and what it does with reports."""

from __future__ import annotations

import time

import pytest

from reveal_contract.kube.names import (
    API_VERSION,
    LABEL_MANAGED_BY,
    LABEL_PROFILE,
    OPERATOR_MANAGER,
    REPORT_KIND,
    child_name,
)
from support.api_server import Object, condition, unique, wait_for
from support.operator_harness import (
    NAMESPACE,
    QUIET_S,
    RETRIED,
    SOON_S,
    OperatorHarness,
    a_report,
    foreign_daemon_set,
)

pytestmark = pytest.mark.timeout(240)


def test_a_bad_spec_sets_a_condition_and_a_single_event(stage: OperatorHarness) -> None:
    name = stage.apply({"collector": {"sources": {"include": ["no-such-source"]}}})

    def rejected() -> Object:
        found = condition(stage.profile(name), "SpecAccepted")
        assert found.get("status") == "False"
        return found

    rejected_condition = wait_for(rejected, SOON_S, "rejected")
    assert "no-such-source" in rejected_condition["message"]
    wait_for(lambda: stage.events(name, "ProfileRejected"), SOON_S, "an Event")
    since, retried = stage.settle(), stage.metric(RETRIED)
    time.sleep(QUIET_S)
    assert stage.writes(since) == []
    assert stage.metric(RETRIED) == retried
    [event] = stage.events(name, "ProfileRejected")
    assert (event["type"], event["note"]) == ("Warning", rejected_condition["message"])
    assert "series" not in event
    assert stage.child("DaemonSet", "collector", name) is None
    stage.kube.patch(stage.profile(name), {"spec": {"collector": {"sources": None}}})
    found = stage.reconciled(name)
    assert condition(found, "SpecAccepted")["status"] == "True"


def test_a_rejected_edit_keeps_the_running_objects(stage: OperatorHarness) -> None:
    name = stage.apply()
    stage.reconciled(name)
    before = stage.daemon_set(name)
    bad = {"spec": {"collector": {"sources": {"exclude": ["no-such-source"]}}}}
    stage.kube.patch(stage.profile(name), bad)
    stage.reconciled(name)
    assert condition(stage.profile(name), "Ready")["reason"] == "InvalidSpec"
    assert stage.daemon_set(name)["metadata"]["generation"] == before["metadata"]["generation"]


def test_overlapping_profiles_are_reported_on_both(stage: OperatorHarness) -> None:
    stage.add_node(unique("shared"), pool="shared", odd="yes")
    first = stage.apply({"nodeSelector": {"pool": "shared"}})
    stage.reconciled(first)
    assert condition(stage.profile(first), "Degraded")["status"] == "Unknown"
    second = stage.apply({"nodeSelector": {"odd": "yes"}})

    def overlap_reported() -> bool:
        for name, other in ((first, second), (second, first)):
            found = condition(stage.profile(name), "Degraded")
            assert (found.get("status"), found.get("reason")) == ("True", "NodesOverlap"), found
            assert f"profile {other} selects 1 of the same nodes" in found["message"]
        return True

    wait_for(overlap_reported, SOON_S, "both report the overlap")
    stage.kube.delete(stage.profile(second))
    wait_for(
        lambda: condition(stage.profile(first), "Degraded")["status"] == "Unknown",
        SOON_S, "alone again",
    )  # fmt: skip


def test_an_immutable_field_is_reported_and_not_retried(
    stage: OperatorHarness,
) -> None:
    name = unique("immutable")
    labels = {"app": "older", LABEL_MANAGED_BY: OPERATOR_MANAGER}
    stage.kube.create(foreign_daemon_set(child_name("collector", name), labels))
    since = stage.audited()
    stage.apply(name=name)

    def immutable_reported() -> Object:
        found = condition(stage.profile(name), "Ready")
        assert found.get("reason") == "ImmutableField", found
        return found

    assert "spec.selector" in wait_for(immutable_reported, SOON_S, "ImmutableField")["message"]
    assert stage.child("Deployment", "analyzer", name)  # the others are made
    time.sleep(QUIET_S)
    tries = [what for _, what, which in stage.writes(since) if which.startswith("reveal-collector")]
    assert len(tries) <= 2
    stage.kube.delete(foreign_daemon_set(child_name("collector", name), labels))
    stage.reconciled(name)
    wait_for(
        lambda: condition(stage.profile(name), "Ready")["reason"] == "NoNodes", 30, "made anew"
    )


def test_objects_of_other_managers_are_not_taken_over(stage: OperatorHarness) -> None:
    name = unique("taken")
    theirs = foreign_daemon_set(child_name("collector", name), {"app": "theirs"})
    stage.kube.create(theirs)
    stage.apply(name=name)
    wait_for(
        lambda: condition(stage.profile(name), "Ready").get("reason") == "NameTaken", SOON_S, ""
    )
    assert stage.daemon_set(name)["metadata"]["labels"] == {"app": "theirs"}


def test_old_reports_are_deleted_and_open_reports_kept(stage: OperatorHarness) -> None:
    limits = {"ttlSecondsAfterResolved": 3600, "maxReports": 3}
    name = stage.apply({"reporting": limits})
    found = stage.reconciled(name)
    for key, state, hours in (
        ("open", "Open", 0), ("old", "Resolved", 2), ("a", "Resolved", 0.5),
        ("b", "Resolved", 0.4), ("c", "Resolved", 0.3),
    ):  # fmt: skip
        a_report(stage, found, key, state, hours)

    def left() -> bool:
        names = {
            report["spec"]["findingID"]
            for report in stage.kube.items(API_VERSION, REPORT_KIND)
            if report["spec"]["profileRef"]["name"] == name
        }
        status = stage.profile(name)["status"]
        assert (status.get("openFindings"), status.get("reports")) == (1, 3), status
        return names == {"cpu-open", "cpu-b", "cpu-c"}

    wait_for(left, 30, "three are left, and counted")


def test_failed_and_recovered_collectors_are_reported(
    stage: OperatorHarness,
) -> None:
    pool = unique("lonely")
    stage.add_node(pool, pool=pool)
    name = stage.apply({"nodeSelector": {"pool": pool}})
    wait_for(lambda: stage.events(name, "CollectorDegraded"), 60, "an Event that it is degraded")
    ready = condition(stage.profile(name), "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "Waiting")
    assert ready["message"] == f"0 of 1 collectors are available: 1 starting ({pool})"
    [event] = stage.events(name, "CollectorDegraded")
    assert event["note"] == ready["message"]
    # as the kubelet would say it
    labels = f"{LABEL_PROFILE}={name},app.kubernetes.io/component=collector"
    [pod] = stage.kube.items("v1", "Pod", NAMESPACE, labels)
    fine = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    stage.kube.patch(pod, {"status": fine}, "status")
    wait_for(lambda: stage.events(name, "CollectorRecovered"), SOON_S, "an Event that it recovered")
    assert condition(stage.profile(name), "CollectorsAvailable")["status"] == "True"
    assert stage.profile(name)["status"]["readyNodes"] == 1
