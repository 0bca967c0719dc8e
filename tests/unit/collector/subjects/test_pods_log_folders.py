"""Pods by the folders of their logs, as the kubelet makes them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest

from reveal_collector.subjects.cgroup_files import hierarchies
from reveal_collector.subjects.pods import log_folders
from reveal_collector.subjects.pods.log_folders import LogFolderPods
from reveal_collector.subjects.tracker import SubjectSelection, SubjectTracker
from support.hosts.cgroups import Container, Layout, PodSpec, add_cgroups
from support.hosts.pod_layouts import LAYOUTS, PODS, STATIC, TRAIN
from support.hosts.tree import Tree

OLD_NS = 10**18  # settled long ago


def add_logs(var_log: Path, pods: Iterable[PodSpec]) -> None:
    """Make the folders and links of the kubelet for these pods."""
    links = var_log / "containers"
    links.mkdir(parents=True, exist_ok=True)
    for pod in pods:
        folder = var_log / "pods" / f"{pod.namespace}_{pod.name}_{pod.uid}"
        for container in pod.containers:
            (folder / container.name).mkdir(parents=True, exist_ok=True)
            name = f"{pod.name}_{pod.namespace}_{container.name}-{container.id(pod.uid)}.log"
            # absolute on a node, where this process sees the tree below /host
            (links / name).symlink_to(f"/var/log/pods/{folder.name}/{container.name}/0.log")


def settle(var_log: Path, second: int = 0) -> None:
    for folder in ("pods", "containers"):
        os.utime(var_log / folder, ns=(OLD_NS, OLD_NS + second * 10**9))


@pytest.fixture
def var_log(tmp_path: Path) -> Path:
    folder = tmp_path / "var/log"
    add_logs(folder, PODS)
    settle(folder)
    return folder


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_pods_and_containers_are_named_in_every_layout(
    tmp_path: Path, var_log: Path, layout: Layout
) -> None:
    tree = Tree(tmp_path / "host")
    add_cgroups(tree, layout, PODS, {})
    pods = LogFolderPods(var_log)
    selection = SubjectSelection(containers=True)
    tracker = SubjectTracker(hierarchies(tree.roots.cgroup), selection, pods)
    tracker._users = 1  # kept up by the test, not by a thread
    pods.poll()
    tracker.update(0.0)
    table = {identity.instance: identity for identity in tracker.identities}
    named = {"ml/train-0", "ml/train-0/worker", "kube-system/kube-proxy-x", "kube-system/etcd-n1"}
    assert named <= table.keys()
    train, static = table["ml/train-0"], table["kube-system/etcd-n1"]
    assert (train.uid, train.owner, train.qos) == (TRAIN.uid, "", "Guaranteed")
    assert f"worker={TRAIN.containers[0].id(TRAIN.uid)}" in train.containers
    assert (static.uid, static.container) == (STATIC.uid, "etcd")


def test_a_pod_is_known_by_its_folder_before_a_container_runs(tmp_path: Path) -> None:
    (tmp_path / "pods" / f"ml_new-0_{TRAIN.uid}").mkdir(parents=True)
    pods = LogFolderPods(tmp_path)
    pods.poll()
    found = pods.index.find(TRAIN.uid)
    assert found is not None and (found.key, dict(found.containers)) == ("ml/new-0", {})
    assert (pods.is_listed, pods.health_error) == (True, "")


def test_folders_are_read_again_only_when_they_change(
    var_log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pods = LogFolderPods(var_log)
    changes: list[int] = []
    pods.start(lambda: changes.append(1))
    pods.stop()
    scans: list[object] = []
    scan = os.scandir
    monkeypatch.setattr(log_folders.os, "scandir", lambda path: scans.append(path) or scan(path))
    pods.poll()
    assert (len(changes), scans) == (1, [])
    second = PodSpec("b", "b" * 32, (Container("main", 1),), "ml")
    add_logs(var_log, [second])
    settle(var_log, 1)
    pods.poll()
    assert (len(changes), len(scans)) == (2, 2)
    assert pods.index.find("", second.containers[0].id(second.uid)) is not None


def test_a_change_in_the_moment_of_a_look_is_not_missed(var_log: Path) -> None:
    """The time of a folder moves with the tick of the kernel."""
    now_ns = var_log.stat().st_mtime_ns
    for folder in ("pods", "containers"):
        os.utime(var_log / folder, ns=(now_ns, now_ns))
    pods = LogFolderPods(var_log)
    pods.poll()
    add_logs(var_log, [PodSpec("b", "b" * 32, (), "ml")])
    (var_log / "pods" / f"ml_b_{'b' * 32}").mkdir()
    for folder in ("pods", "containers"):
        os.utime(var_log / folder, ns=(now_ns, now_ns))
    pods.poll()
    assert pods.index.find("b" * 32) is not None


def test_a_pod_that_is_gone_stays_known_for_a_while(
    var_log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr(log_folders.time, "monotonic", lambda: clock[0])
    pods = LogFolderPods(var_log)
    pods.poll()
    shutil.rmtree(var_log / "pods" / f"ml_train-0_{TRAIN.uid}")
    for second, known in ((60.0, True), (100.0, True), (190.0, False)):
        clock[0] = second
        settle(var_log, int(second))
        pods.poll()
        assert (pods.index.find(TRAIN.uid) is not None) is known


def test_names_of_others_are_skipped(var_log: Path) -> None:
    (var_log / "pods" / "lost+found").mkdir()
    (var_log / "pods" / "a_b_c_d").mkdir()
    (var_log / "containers" / "no-link.log").touch()
    (var_log / "containers" / f"x_y_z-{'0' * 64}.log").symlink_to("/elsewhere")
    pods = LogFolderPods(var_log)
    pods.poll()
    assert {pod.name for pod in pods.index.pods} == {pod.name for pod in PODS}


def test_without_the_folder_of_the_pods_the_reason_is_stated(tmp_path: Path) -> None:
    pods = LogFolderPods(tmp_path)
    pods.poll()
    assert f"{tmp_path}/pods cannot be used" in pods.health_error
    assert not pods.is_listed
    (tmp_path / "pods").mkdir()
    pods.poll()
    assert (pods.health_error, pods.is_listed) == ("", True)
