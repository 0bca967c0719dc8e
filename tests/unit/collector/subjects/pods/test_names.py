"""Which pod a cgroup belongs to, by its path and the list of the node's pods."""

from __future__ import annotations

import pytest

from reveal_collector.subjects.pods.names import subject_paths
from reveal_collector.subjects.pods.podlist import Pod, PodIndex

OUTER, INNER = (f"0000000{number}-1111-4222-8333-444444444444" for number in (1, 2))


def folder(uid: str) -> str:
    return f"kubepods.slice/kubepods-pod{uid.replace('-', '_')}.slice"


PATH = f"/{folder(OUTER)}/cri-containerd-{'a' * 64}.scope/{folder(INNER)}"


@pytest.mark.parametrize(
    ("listed", "expected"),
    [
        ([OUTER], OUTER),  # of a cluster, in one of whose pods another runs
        ([INNER], INNER),  # of the cluster that runs in it
        ([OUTER, INNER], OUTER),  # a pod that names a cgroup like another pod
        ([], INNER),
    ],
)
def test_the_outermost_listed_pod_of_a_path_counts(listed: list[str], expected: str) -> None:
    index = PodIndex([Pod(uid, "ns", uid) for uid in listed])
    (owner,) = subject_paths(PATH, index, containers=False)
    assert owner.uid == expected
