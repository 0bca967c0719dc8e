"""A subject has the same kind in findings, in comparisons of nodes and as a rank of a job."""

from __future__ import annotations

import pytest

from reveal_analyzer.subjects.subject_kind import kind_of
from reveal_contract.subjects import Identity, SubjectKind


@pytest.mark.parametrize(
    ("instance", "kind"),
    [
        ("pgrp:python[812]", "ProcessGroup"),
        ("session:bash[1369]", "ProcessGroup"),
        ("/system.slice/sshd.service", "Unit"),
        ("/user.slice/run-r1.scope", "Unit"),
        ("/user.slice", "Unit"),
        ("/slurm/uid_1/job_7", "Cgroup"),
    ],
)
def test_a_subject_that_was_not_announced_is_known_by_its_name(instance: str, kind: str) -> None:
    assert kind_of(instance, None) == kind


def test_what_was_announced_counts() -> None:
    assert kind_of("/a.service", Identity("/a.service", SubjectKind.JOB)) == "Job"
