"""Controllers and jobs of pods, listed by node."""

from __future__ import annotations

from typing import Any

from reveal_analyzer.sinks.kube.pod_owners import (
    ABSENT_SECONDS,
    MOST_PODS,
    NODES_A_STEP,
    REFUSED_SECONDS,
    PodOwners,
)
from reveal_contract.kube.errors import ForbiddenError
from reveal_contract.subjects import Identity, SubjectKind
from support.fake_kube import FakeKube


def pod(name: str, namespace: str = "ml", **labels: str) -> dict[str, Any]:
    owner = {"kind": "StatefulSet", "name": "train", "controller": True}
    return {
        "metadata": {
            "namespace": namespace, "name": name, "ownerReferences": [owner], "labels": labels,
        }
    }  # fmt: skip


def subject(name: str, kind: SubjectKind = SubjectKind.POD, **other: Any) -> Identity:
    return Identity(f"ml/{name}", kind, "uid", "ml", name, **other)


def listed(api: FakeKube) -> list[str]:
    return [about for name, about in api.calls if name == "pod_metadata"]


def test_subjects_of_pods_get_their_controller_and_job_after_a_step() -> None:
    api = FakeKube()
    api.pods["n1"] = [pod("a", **{"jobset.sigs.k8s.io/jobset-name": "llm"}), pod("b")]
    owners = PodOwners(api)
    given = (
        subject("a"),
        subject("b", SubjectKind.CONTAINER),
        Identity("/x.service", SubjectKind.UNIT),
    )
    assert owners.completed("n1", given) == given
    owners.step(0.0)
    a, b, unit = owners.completed("n1", given)
    assert (a.owner, a.job) == ("StatefulSet/train", "JobSet/llm")
    assert (b.owner, b.job) == ("StatefulSet/train", "")
    assert unit == given[2]
    owners.step(1.0)
    assert listed(api) == ["n1"], "all of them are known"


def test_what_a_collector_knows_stays() -> None:
    api = FakeKube()
    api.pods["n1"] = [pod("a")]
    owners = PodOwners(api)
    given = (subject("a", owner="Job/other"),)
    owners.completed("n1", given)
    owners.step(0.0)
    assert owners.completed("n1", given) == given


def test_a_new_pod_is_listed_and_a_pod_without_an_object_once_a_minute() -> None:
    api = FakeKube()
    owners = PodOwners(api)
    for second in range(int(2 * ABSENT_SECONDS)):
        owners.completed("n1", [subject("absent")])
        owners.step(float(second))
    assert len(listed(api)) == 2
    api.pods["n1"] = [pod("new")]
    owners.completed("n1", [subject("absent"), subject("new")])
    owners.step(2 * ABSENT_SECONDS - 0.5)
    assert owners.completed("n1", [subject("new")])[0].owner == "StatefulSet/train"
    assert len(listed(api)) == 3


def test_a_pod_that_ended_keeps_its_controller_and_needs_no_list() -> None:
    api = FakeKube()
    api.pods["n1"] = [pod("a")]
    owners = PodOwners(api)
    owners.completed("n1", [subject("a")])
    owners.step(0.0)
    api.pods["n1"] = [pod("b")]
    owners.completed("n1", [subject("b")])
    owners.step(1.0)
    ended = subject("a", until_ns=1)
    assert owners.completed("n1", [ended])[0].owner == "StatefulSet/train"
    owners.completed("n1", [subject("c", until_ns=1)])
    owners.step(ABSENT_SECONDS + 2)
    assert listed(api) == ["n1", "n1"]


def test_pods_that_are_gone_are_not_kept_for_ever() -> None:
    api = FakeKube()
    owners = PodOwners(api)
    for second in range(4):
        api.pods["n1"] = [pod(f"{second}-{number}") for number in range(MOST_PODS // 2)]
        owners.completed("n1", [subject(f"{second}-0")])
        owners.step(float(second))
    assert owners.completed("n1", [subject("0-0")])[0].owner == ""
    assert owners.completed("n1", [subject("3-0")])[0].owner != ""


def test_many_nodes_are_listed_in_portions() -> None:
    api = FakeKube()
    owners = PodOwners(api)
    for step in range(3):
        for number in range(2 * NODES_A_STEP):
            owners.completed(f"n{number}", [subject("a")])
        owners.step(float(step))
    assert sorted(listed(api)) == sorted(f"n{number}" for number in range(2 * NODES_A_STEP))


def test_without_the_right_to_list_pods_nothing_is_asked_for_a_while() -> None:
    api = FakeKube()
    api.fail = lambda name, about: ForbiddenError("no")
    owners = PodOwners(api)
    for second in (0.0, 1.0, REFUSED_SECONDS):
        owners.completed("n1", [subject("a")])
        owners.step(second)
    assert len(listed(api)) == 2
