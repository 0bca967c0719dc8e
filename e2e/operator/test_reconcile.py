"""The operator on a real API server: the children it makes, keeps and leaves alone."""

from __future__ import annotations

import time
from typing import Any

import pytest

from reveal_contract.kube.names import (
    ANNOTATION_HYPOTHESES,
    LABEL_MANAGED_BY,
    LABEL_PROFILE,
)
from support.api_server import Object, condition, wait_for
from support.operator_harness import (
    NAMESPACE,
    QUIET_S,
    SOON_S,
    OperatorHarness,
)

pytestmark = pytest.mark.timeout(240)


def test_a_profile_gets_its_owned_objects_and_conditions(stage: OperatorHarness) -> None:
    name = stage.apply({"nodeSelector": {"pool": "three"}})
    for number in range(3):
        stage.add_node(f"gpu-{number}", pool="three")
    found = stage.reconciled(name)
    owner = stage.daemon_set(name)["metadata"]["ownerReferences"][0]
    assert (owner["uid"], owner["blockOwnerDeletion"]) == (found["metadata"]["uid"], False)
    assert "finalizers" not in found["metadata"]
    assert not found["metadata"].get("annotations")

    def counted() -> bool:
        status = stage.profile(name)["status"]
        return (status.get("desiredNodes"), status.get("readyNodes")) == (3, 0)

    wait_for(counted, SOON_S, "the nodes are counted")
    found = stage.profile(name)
    assert condition(found, "SpecAccepted")["status"] == "True"
    ready = condition(found, "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "Starting")
    assert ready["message"] == "0 of 3 collectors are available"
    assert condition(found, "StreamReachable")["status"] == "Unknown"
    assert stage.child("PodDisruptionBudget", "analyzer", name) is None


def test_an_edit_rolls_out(stage: OperatorHarness) -> None:
    name = stage.apply({"collector": {"maxSubjects": 10}})
    stage.reconciled(name)
    before = stage.daemon_set(name)
    stage.kube.patch(stage.profile(name), {"spec": {"collector": {"maxSubjects": 20}}})

    def rolled() -> bool:
        settings = stage.child("ConfigMap", "settings", name)
        assert settings and '"maxSubjects": 20' in settings["data"]["collector.json"]
        template = stage.daemon_set(name)["spec"]["template"]["metadata"]["annotations"]
        return bool(template != before["spec"]["template"]["metadata"]["annotations"])

    wait_for(rolled, SOON_S, "new settings, new pods")


def test_changed_hypotheses_roll_out(stage: OperatorHarness) -> None:
    config = {
        "apiVersion": "v1", "kind": "ConfigMap", "data": {"mine.yaml": "hypotheses: []"},
        "metadata": {"name": "mine", "namespace": NAMESPACE},
    }  # fmt: skip
    stage.kube.create(config)
    names = [stage.apply({"analyzer": {"hypothesesConfigMapRef": {"name": "mine"}}}) for _ in "ab"]
    others = stage.apply()
    for name in (*names, others):
        stage.reconciled(name)

    def templates() -> list[Object]:
        found = [stage.child("Deployment", "analyzer", name) for name in (*names, others)]
        return [item["spec"]["template"]["metadata"]["annotations"] for item in found if item]

    def known() -> bool:
        return all(ANNOTATION_HYPOTHESES in template for template in templates()[:2])

    wait_for(known, SOON_S, "the hypotheses are known")
    stage.settle()
    before = templates()
    stage.kube.patch(config, {"data": {"mine.yaml": "hypotheses: [] # others"}})

    def rolled() -> bool:
        pairs = zip(templates(), before, strict=True)
        return [now != then for now, then in pairs] == [True, True, False]

    wait_for(rolled, SOON_S, "other hypotheses, other pods")
    quiet = stage.settle()
    stage.kube.patch(config, {"metadata": {"labels": {"team": "a"}}})
    stage.settle()
    assert stage.writes(quiet) == []


def test_only_several_analyzers_have_a_disruption_budget(
    stage: OperatorHarness,
) -> None:
    name = stage.apply({"analyzer": {"replicas": 2}})
    stage.reconciled(name)
    budget = ("PodDisruptionBudget", "analyzer", name)
    wait_for(lambda: stage.child(*budget), SOON_S, "a budget")
    stage.kube.patch(stage.profile(name), {"spec": {"analyzer": {"replicas": 1}}})
    wait_for(lambda: stage.child(*budget) is None, SOON_S, "no budget")
    assert stage.child("Deployment", "analyzer", name)["spec"]["replicas"] == 1  # type: ignore[index]


def test_a_deleted_object_is_recreated_within_seconds(stage: OperatorHarness) -> None:
    name = stage.apply()
    stage.reconciled(name)
    for kind, component in (
        ("DaemonSet", "collector"), ("Deployment", "analyzer"), ("ConfigMap", "settings"),
    ):  # fmt: skip
        child = stage.child(kind, component, name)
        assert child is not None
        stage.kube.delete(child)
        began = time.monotonic()

        def back(old: Object = child, kind: str = kind, component: str = component) -> bool:
            now = stage.child(kind, component, name)
            return now is not None and now["metadata"]["uid"] != old["metadata"]["uid"]

        wait_for(back, 5, f"{kind} is back")
        print(f"{kind} back after {time.monotonic() - began:.2f} s")


@pytest.mark.parametrize(
    "edit",
    [
        {"spec": {"template": {"spec": {"hostPID": False}}}},
        {"metadata": {"labels": {LABEL_MANAGED_BY: None}}},
        {"metadata": {"labels": {LABEL_PROFILE: "another"}, "ownerReferences": None}},
        {"metadata": {"labels": None, "ownerReferences": None}},
        {"metadata": {"annotations": None}},
    ],
    ids=["field", "label", "owner", "all-marks", "intent"],
)
def test_an_edited_object_is_restored_within_seconds(stage: OperatorHarness, edit: Object) -> None:
    name = stage.apply()
    stage.reconciled(name)
    before = stage.daemon_set(name)
    stage.kube.patch(before, edit)
    began = time.monotonic()

    def restored() -> bool:
        now = stage.daemon_set(name)
        same = now["spec"]["template"]["spec"] == before["spec"]["template"]["spec"]
        kept = ("labels", "annotations", "ownerReferences")
        marks = [{**_plain(item["metadata"].get(key))} for item in (now, before) for key in kept]
        return same and marks[:3] == marks[3:]

    wait_for(restored, 5, "restored")
    print(f"restored after {time.monotonic() - began:.2f} s")


def _plain(marks: Any) -> dict[str, Any]:
    known = (
        marks if isinstance(marks, dict) else {str(n): mark for n, mark in enumerate(marks or ())}
    )
    return {key: value for key, value in known.items() if not key.startswith("deprecated.")}


def test_fields_of_other_managers_are_kept(stage: OperatorHarness) -> None:
    name = stage.apply()
    stage.reconciled(name)
    since = stage.settle()
    stage.kube.patch(stage.daemon_set(name), {"metadata": {"annotations": {"team": "ours"}}})
    time.sleep(QUIET_S)
    assert stage.daemon_set(name)["metadata"]["annotations"]["team"] == "ours"
    assert stage.writes(since) == []


def test_a_paused_profile_is_not_reconciled(stage: OperatorHarness) -> None:
    name = stage.apply({"paused": False})
    stage.reconciled(name)
    stage.kube.patch(stage.profile(name), {"spec": {"paused": True}})
    stage.reconciled(name)
    since = stage.audited()
    stage.kube.patch(stage.daemon_set(name), {"spec": {"template": {"spec": {"hostPID": False}}}})
    deployment = stage.child("Deployment", "analyzer", name)
    assert deployment is not None
    stage.kube.delete(deployment)
    stage.kube.patch(stage.profile(name), {"spec": {"collector": {"maxSubjects": 5}}})
    time.sleep(QUIET_S)
    assert {what for _, what, _ in stage.writes(since)} == {"revealprofiles"}  # the status
    assert stage.child("Deployment", "analyzer", name) is None
    assert not stage.daemon_set(name)["spec"]["template"]["spec"].get("hostPID")
    ready = condition(stage.profile(name), "Ready")
    assert ready["reason"] in ("Paused", "NoNodes")
    stage.kube.patch(stage.profile(name), {"spec": {"paused": False}})
    wait_for(lambda: stage.child("Deployment", "analyzer", name), SOON_S, "made again")
    wait_for(
        lambda: stage.daemon_set(name)["spec"]["template"]["spec"].get("hostPID"),
        SOON_S, "restored",
    )  # fmt: skip
