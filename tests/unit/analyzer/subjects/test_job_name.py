"""The job of a subject, by the name that it has on all nodes."""

from __future__ import annotations

from typing import Any

import pytest

from reveal_analyzer.subjects.job_name import has_process_id, job_name
from reveal_contract.subjects import Identity, SubjectKind


def pod(name: str = "t-0", **given: Any) -> Identity:
    return Identity(f"ml/{name}", SubjectKind.POD, "u", "ml", name, **given)


@pytest.mark.parametrize(
    ("instance", "identity", "expected"),
    [
        ("ml/t-0", pod(owner="StatefulSet/t"), "ml/StatefulSet/t"),
        ("ml/t-0", pod(owner="Job/t-workers", job="JobSet/t"), "ml/JobSet/t"),
        ("ml/t-0", pod(), "ml/t-0"),
        ("ml/kube-proxy-n1", pod("kube-proxy-n1", owner="Node/n1"), "ml/kube-proxy"),
        ("/slurm/job_7", Identity("/slurm/job_7", SubjectKind.JOB, "7"), "/slurm/job_7"),
        ("/system.slice/db.service", None, "/system.slice/db.service"),
        ("pgrp:python[4711]", None, "pgrp:python"),
        ("/system.slice/train@3.service", None, "/system.slice/train@.service"),
        ("/a@b/c", None, "/a@b/c"),
    ],
)
def test_the_parts_that_differ_between_ranks_are_left_out(
    instance: str, identity: Identity | None, expected: str
) -> None:
    assert job_name(instance, identity, "n1") == expected


def test_a_group_of_processes_is_named_by_its_leader() -> None:
    assert has_process_id("pgrp:python[4711]")
    assert not has_process_id("/train.service")
