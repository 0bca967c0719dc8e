"""A large host keeps thousands of files open: nothing may end at descriptor 1024."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from reveal_collector.subjects.cgroup_files import hierarchies
from reveal_collector.subjects.tracker import SubjectSelection, SubjectTracker
from support.hosts.base import add_base
from support.hosts.cgroups import V2, Layout
from support.hosts.pods import add_pods
from support.hosts.tree import Tree
from support.polling import wait_until


@pytest.fixture
def crowded() -> Iterator[None]:
    """This process with its first 1100 descriptors taken."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    if before[1] < 2048:
        pytest.skip("no more than 2048 descriptors are allowed here")
    with ExitStack() as stack:
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, before)
        resource.setrlimit(resource.RLIMIT_NOFILE, (2048, before[1]))
        while (taken := os.open("/dev/null", os.O_RDONLY)) < 1100:
            stack.callback(os.close, taken)
        stack.callback(os.close, taken)
        yield


def test_new_cgroups_are_found_with_a_thousand_files_open(tmp_path: Path, crowded: None) -> None:
    tree = Tree(tmp_path)
    add_base(tree)
    add_pods(tree, Layout(V2))
    tracker = SubjectTracker(hierarchies(tree.roots.cgroup), SubjectSelection())
    tracker.start()
    try:
        for name in ("first.service", "second.service"):
            tree.write(f"cgroup/system.slice/{name}/cgroup.procs", "4242\n")
            tree.write(f"cgroup/system.slice/{name}/cpu.stat", "usage_usec 5\n")
            wait_until(partial(has_subject, tracker, f"/system.slice/{name}"), f"{name} is noticed")
    finally:
        tracker.stop()


def has_subject(tracker: SubjectTracker, path: str) -> bool:
    return any(subject.path == path for subject in tracker.current)
