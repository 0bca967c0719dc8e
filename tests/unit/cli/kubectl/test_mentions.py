"""Which reports are about a pod, a job or a node."""

from __future__ import annotations

import pytest

from reveal_cli.jobs import affected_job, job_of
from reveal_cli.kubectl.mentions import is_about, known_names, near
from reveal_cli.kubectl.reports import ClusterReport
from reveal_contract.finding import Confidence, Finding, Impact, JobLoss, Pod, Subject
from support.finding_factory import finding
from support.reports_api import stored

CULPRIT = Pod("batch", "reindex-5d9f7", "", "", 61, 58, Confidence.MEASURED)


def of(found: Finding) -> ClusterReport:
    parsed = ClusterReport.parse(stored(found))
    assert parsed is not None
    return parsed


@pytest.mark.parametrize(
    ("pod", "job"),
    [
        ("a/trainer-0", "a/trainer"),  # StatefulSet
        ("a/vllm-0-1", "a/vllm"),  # LeaderWorkerSet
        ("a/serve-7c9d8b6f5d-x2x9k", "a/serve"),  # Deployment
        ("a/train-4-x2x9k", "a/train"),  # Job with an index
        ("a/train-x2x9k", "a/train"),  # Job
        ("a/pretrain", "a/pretrain"),
        ("a/big-train", "a/big-train"),  # a word, no random characters
        ("/system.slice/backup.service", "/system.slice/backup.service"),
        ("backup.service", "backup.service"),
    ],
)
def test_a_job_is_its_pods_without_the_generated_part(pod: str, job: str) -> None:
    assert job_of(pod) == job


def test_the_job_of_a_finding_is_that_which_suffers_most() -> None:
    impact = Impact("ml/slow-0", 20.0, 18.0, 22.0, 120.0, 100.0, 0, 30, "c", 90)
    losses = (JobLoss("ml/lost-0", 30.0, 60),)
    pods = (CULPRIT,)
    assert affected_job(finding(impact=impact, lost_time=losses, pods=pods)) == "ml/slow"
    assert affected_job(finding(lost_time=losses, victims=("ml/v-0",), pods=pods)) == "ml/lost"
    assert affected_job(finding(victims=("ml/v-0",), pods=pods)) == "ml/v"
    assert affected_job(finding(pods=pods)) == "batch/reindex"
    unit = Subject("Unit", "backup.service", 70, 60, Confidence.MEASURED)
    assert affected_job(finding(subjects=(unit,))) == "backup.service"
    assert affected_job(finding()) == ""


@pytest.mark.parametrize(
    ("name", "namespace", "expected"),
    [
        ("n1", "", True),
        ("n1", "batch", False),  # a node has no namespace
        ("reindex-5d9f7", "", True),
        ("batch/reindex-5d9f7", "", True),
        ("reindex", "batch", True),
        ("reindex", "ml", False),
        ("trainer", "ml", True),
        ("trainer-0", "ml", True),
        ("trainer-1", "", False),
        ("p-n1-cpu-1", "", True),
        ("", "", False),
    ],
)
def test_a_report_is_found_by_pod_job_node_and_name(
    name: str, namespace: str, expected: bool
) -> None:
    item = of(finding(pods=(CULPRIT,), victims=("ml/trainer-0",)))
    assert is_about(item, name, namespace) is expected


def test_names_of_other_namespaces_are_not_suggested() -> None:
    item = of(finding(pods=(CULPRIT,), victims=("ml/trainer-0",)))
    assert {"n1", "trainer", "trainer-0", "batch/reindex"} <= set(known_names([item]))
    assert set(known_names([item], "ml")) == {"ml/trainer-0", "trainer-0", "ml/trainer", "trainer"}


def test_similar_names_are_suggested_and_are_printable() -> None:
    assert near("trainr-0", ["trainer-0", "serve"]) == ": did you mean trainer-0?"
    assert near("serve", ["llm-serve-canary-0", "x"]) == ": did you mean llm-serve-canary-0?"
    assert near("zzz", ["trainer-0"]) == ""
    assert near("ab", ["ab\x1b[2J"]) == ": did you mean ab\\x1b[2J?"
