"""Pods as subjects: every layout joined with the pod list, from cgroup files to channels."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_collector.kernel_interfaces.errors import LayoutChanged
from reveal_collector.readers.source import Source
from reveal_collector.subjects import cgroups
from reveal_collector.subjects.cgroup_files import hierarchies
from reveal_collector.subjects.pods.file import FilePods
from reveal_collector.subjects.pods.podlist import PodIndex, pod_of, pods_of
from reveal_collector.subjects.tracker import SubjectSelection, SubjectTracker
from reveal_contract.subjects import SubjectKind
from support.hosts.cgroups import (
    HOST_NETWORK,
    HYBRID,
    V1,
    Container,
    Layout,
    add_cgroups,
    pod_list,
)
from support.hosts.pod_layouts import LAYOUTS, PODS, STATIC, TRAIN
from support.hosts.tree import Tree
from support.property_tests import examples


@contextmanager
def opened(
    tree: Tree, layout: Layout, selection: SubjectSelection | None = None, listed: object = None
) -> Iterator[tuple[SubjectTracker, dict[str, Source]]]:
    path = tree.root / "pods.json"
    path.write_text(json.dumps(listed or pod_list(PODS, "n1", layout.runtime)))
    pods = FilePods(path, "n1")
    tracker = SubjectTracker(hierarchies(tree.roots.cgroup), selection or SubjectSelection(), pods)
    tracker._users = 1  # kept up by the test, not by a thread
    pods.poll()
    tracker.update(0.0)
    sources = {source.name: source for source in cgroups.subject_sources(tree.roots, tracker)}
    del sources["subject-storage"]  # the cgroups here count it themselves
    for source in sources.values():
        source.open()
    try:
        yield tracker, sources
    finally:
        for source in sources.values():
            source.close()


def read(source: Source) -> dict[str, float | None]:
    """Return values in base units by label."""
    return {
        channel.label: None if value is None else value * channel.scale
        for channel, value in zip(source.channels, source.read(), strict=True)
    }


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_pods_are_found_and_named_in_every_layout(tmp_path: Path, layout: Layout) -> None:
    tree = Tree(tmp_path)
    add_cgroups(tree, layout, PODS, {"/system.slice/kubelet.service": (0.3, 900)})
    with opened(tree, layout) as (tracker, sources):
        table = {identity.instance: identity for identity in tracker.identities}
        clocks = sources["cgroup-cpu"]
        before = read(clocks)
        tree.advance(1.0)
        after = read(clocks)
    names = {"ml/train-0", "kube-system/kube-proxy-x", "kube-system/etcd-n1"}
    assert set(table) == names | {"/system.slice/kubelet.service"}
    train = table["ml/train-0"]
    assert (train.kind, train.uid, train.owner) == (SubjectKind.POD, TRAIN.uid, "StatefulSet/train")
    assert (train.qos, train.container, train.cgroup) == ("Guaranteed", "", layout.pod(TRAIN))
    assert f"worker={TRAIN.containers[0].id(TRAIN.uid)}" in train.containers
    assert table["kube-system/kube-proxy-x"].host_network
    assert table["kube-system/kube-proxy-x"].container == "proxy"
    assert table["kube-system/etcd-n1"].uid.startswith("11111111-")  # the API's, not the hash
    used = {
        label: (after[label] or 0) - (before[label] or 0)
        for label in after if label.startswith("cpu.subject.usage")
    }  # fmt: skip
    assert used == pytest.approx({
        "cpu.subject.usage{ml/train-0}": 1.6e9, "cpu.subject.usage{kube-system/etcd-n1}": 2e8,
        "cpu.subject.usage{kube-system/kube-proxy-x}": 5e7,
        "cpu.subject.usage{/system.slice/kubelet.service}": 3e8,
    }, rel=1e-3)  # fmt: skip


def test_containers_of_a_pod_are_separated_on_request(tmp_path: Path) -> None:
    tree, layout = Tree(tmp_path), Layout()
    add_cgroups(tree, layout, PODS)
    with opened(tree, layout, SubjectSelection(containers=True)) as (tracker, _):
        table = {identity.instance: identity for identity in tracker.identities}
    worker = table["ml/train-0/worker"]
    assert (worker.kind, worker.parent) == (SubjectKind.CONTAINER, "ml/train-0")
    assert worker.uid == TRAIN.containers[0].id(TRAIN.uid)
    assert {"ml/train-0", "ml/train-0/sidecar", "kube-system/etcd-n1"} < set(table)
    assert "kube-system/etcd-n1/etcd" not in table  # a single one is the pod


def test_a_pod_nobody_lists_goes_by_its_uid_until_it_is_listed(tmp_path: Path) -> None:
    tree, layout = Tree(tmp_path), Layout(V1, "containerd", "cgroupfs")
    add_cgroups(tree, layout, [TRAIN])
    with opened(tree, layout, listed={"items": []}) as (tracker, _):
        (unknown,) = tracker.identities
        assert (unknown.instance, unknown.qos) == (f"pod:{TRAIN.uid}", "Guaranteed")
        (tree.root / "pods.json").write_text(json.dumps(pod_list(PODS, "n1")))
        tracker.pods.poll()  # type: ignore[attr-defined]
        tracker.update(1.0)
        assert [identity.instance for identity in tracker.identities] == ["ml/train-0"]
        assert not tracker.current[0].newborn  # its counters did not begin just now


@pytest.mark.parametrize(("listed_s", "instance"), [(2.0, "ml/train-0"), (None, "pod:")])
def test_pods_have_no_name_before_the_first_list_for_a_while(
    tmp_path: Path, listed_s: float | None, instance: str
) -> None:
    """A collector that was restarted continues with the subjects that it had."""
    tree, layout = Tree(tmp_path), Layout()
    add_cgroups(tree, layout, [TRAIN])
    pods = FilePods(tree.root / "pods.json", "n1")
    tracker = SubjectTracker(hierarchies(tree.roots.cgroup), SubjectSelection(), pods)
    for second in (0.0, 2.0, 10.0):
        if second == listed_s:
            (tree.root / "pods.json").write_text(json.dumps(pod_list(PODS, "n1", layout.runtime)))
        pods.poll()
        tracker.update(second)
        names = [identity.instance for identity in tracker.identities]
        assert bool(names) is (second >= (listed_s or 10.0))
    assert [name for name in names if name.startswith(instance)] == names


def test_a_pod_recreated_under_its_name_is_another_subject(tmp_path: Path) -> None:
    tree, layout = Tree(tmp_path), Layout()
    add_cgroups(tree, layout, [TRAIN])
    tree.advance(5.0)
    with opened(tree, layout) as (tracker, sources):
        clocks = sources["cgroup-cpu"]
        before = read(clocks)["cpu.subject.usage{ml/train-0}"]
        tree.remove(f"cgroup{layout.pod(TRAIN)}")
        again = replace(TRAIN, uid="2b2c3d4e-5f60-4718-8a9b-0c1d2e3f4a5b")
        add_cgroups(tree, layout, [again])
        (tree.root / "pods.json").write_text(json.dumps(pod_list([again], "n1")))
        tracker.pods.poll()  # type: ignore[attr-defined]
        tracker.update(1.0)
        rows = [retried(clocks)["cpu.subject.usage{ml/train-0}"] for _ in range(14)]
    table = [
        (identity.instance, identity.uid, bool(identity.until_ns))
        for identity in tracker.identities
    ]
    assert table == [("ml/train-0", again.uid, False), ("ml/train-0", TRAIN.uid, True)]
    assert before
    assert rows[0] == 0  # a fall, which is no step
    assert rows[-1] == pytest.approx(8e9)  # all it used since it was made


def retried(source: Source) -> dict[str, float | None]:
    try:
        return read(source)
    except cgroups.LayoutChanged:
        return read(source)


def test_two_pods_of_the_same_name_are_separated_while_both_live(tmp_path: Path) -> None:
    tree, layout = Tree(tmp_path), Layout()
    later = replace(TRAIN, uid="0b2c3d4e-5f60-4718-8a9b-0c1d2e3f4a5b",
                    containers=(Container("worker", 500),))  # fmt: skip
    add_cgroups(tree, layout, [TRAIN])
    with opened(tree, layout, listed=pod_list([TRAIN, later], "n1")) as (tracker, _):
        add_cgroups(tree, layout, [later])
        tracker.update(1.0)
        assert [(identity.instance, identity.uid) for identity in tracker.identities] == [
            ("ml/train-0~0b2c3d4e", later.uid), ("ml/train-0", TRAIN.uid)
        ]  # fmt: skip


def test_containers_without_a_pod_cgroup_are_that_pods(tmp_path: Path) -> None:
    """containerd's older form with the systemd driver and version 1."""
    tree, layout = Tree(tmp_path), Layout()
    first, second = (each.id(TRAIN.uid) for each in TRAIN.containers)
    folder = f"/system.slice/containerd.service/kubepods-pod{TRAIN.uid.replace('-', '_')}.slice"
    others = {f"{folder}:cri-containerd:{first}": (1.0, 100),
              f"{folder}:cri-containerd:{second}": (0.1, 110)}  # fmt: skip
    add_cgroups(tree, layout, (), others)
    with opened(tree, layout) as (tracker, _):
        table = {identity.instance: identity.uid for identity in tracker.identities}
    name = max(first, second)[:12]
    assert table == {"ml/train-0": TRAIN.uid, f"ml/train-0/{name}": TRAIN.uid}


def test_a_finished_pod_stays_listed_for_a_while_with_its_last_usage(tmp_path: Path) -> None:
    tree, layout = Tree(tmp_path), Layout()
    add_cgroups(tree, layout, [TRAIN, STATIC])
    with opened(tree, layout) as (tracker, sources):
        clocks = sources["cgroup-cpu"]
        tree.advance(2.0)
        assert read(clocks)["cpu.subject.usage{ml/train-0}"] == pytest.approx(3.2e9)
        shutil.rmtree(tree.root / f"cgroup{layout.pod(TRAIN)}")
        tracker.update(1.0)
        gone = {identity.instance: identity.until_ns for identity in tracker.identities}
        assert gone["ml/train-0"] > 0
        assert gone["kube-system/etcd-n1"] == 0
        tracker.update(1.0 + 31)
        assert [identity.instance for identity in tracker.current] == ["kube-system/etcd-n1"]


def test_network_is_counted_by_namespace(tmp_path: Path) -> None:
    tree, layout = Tree(tmp_path), Layout()
    add_cgroups(tree, layout, PODS)
    with opened(tree, layout) as (_, sources):
        network = sources["subject-network"]
        first = read(network)
        tree.advance(10.0)
        for _ in range(5):  # idle ones are read every fifth time
            last = read(network)
    got = {label: (last[label] or 0) - (first[label] or 0) for label in first}
    assert got["network.subject.rx_bytes{ml/train-0}"] == 1_000_000
    assert got["network.subject.tx_bytes{ml/train-0}"] == 500_000
    assert last["network.subject.drops{ml/train-0}"] == 3
    assert got["network.subject.out_segs{ml/train-0}"] == 1000
    assert got["network.subject.retrans_segs{ml/train-0}"] == 10
    assert not any("kube-proxy" in label for label in got)  # it has the host's


def test_a_pod_continues_through_another_process(tmp_path: Path) -> None:
    tree, layout = Tree(tmp_path), Layout()
    add_cgroups(tree, layout, [TRAIN])
    with opened(tree, layout) as (_, sources):
        network = sources["subject-network"]
        label = "network.subject.rx_bytes{ml/train-0}"
        assert read(network)[label] == 1000
        path = layout.processes(TRAIN, TRAIN.containers[0].id(TRAIN.uid))
        for pid in (100, 101, 110):
            tree.write(f"proc/{pid}/stat", "")
            if pid != 110:
                tree.remove(f"proc/{pid}/ns")
        tree.write(f"cgroup{path}/cgroup.procs", "")
        tree.write("proc/110/stat", "110 (x) S")
        rows = [read(network)[label] for _ in range(10)]
    assert rows[-1] == 1000
    assert None in rows or rows[0] == 1000


@pytest.mark.parametrize("first", [f"net:[{HOST_NETWORK}]", ""])
@pytest.mark.parametrize(("seconds", "after"), [(1, 2), (120, 10), (3600, 31)])
def test_a_pod_without_its_own_network_is_checked_again(
    tmp_path: Path, first: str, seconds: int, after: int
) -> None:
    """A runtime moves a process into its pod's cgroup before it enters the pod's network."""
    tree, layout = Tree(tmp_path), Layout()
    add_cgroups(tree, layout, [TRAIN])
    links = [f"proc/{pid}/ns/net" for pid in (100, 101, 110)]
    for link in links:
        tree.link(link, first) if first else tree.remove(link)
    with opened(tree, layout) as (_, sources):
        network = sources["subject-network"]
        assert not any(read(network) for _ in range(seconds))
        for link in links:
            tree.link(link, f"net:[{TRAIN.netns}]")
        for _ in range(after):
            with suppress(LayoutChanged):
                row = read(network)
    assert row["network.subject.rx_bytes{ml/train-0}"] == 1000


def test_a_process_belongs_to_the_subject_of_its_cgroup(tmp_path: Path) -> None:
    tree, layout = Tree(tmp_path), Layout(HYBRID)
    add_cgroups(tree, layout, PODS, {"/system.slice/ssh.service": (0.1, 900)})
    tree.write("proc/7/cgroup", "0::/\n")
    with opened(tree, layout) as (tracker, _):
        proc = tree.roots.proc
        assert tracker.subject_of(110, proc) == "ml/train-0"
        assert tracker.subject_of(900, proc) == "/system.slice/ssh.service"
        assert tracker.subject_of(7, proc) is None
        with pytest.raises(OSError, match="99"):
            tracker.subject_of(99, proc)


def test_a_changed_pod_file_is_read_again_and_an_invalid_file_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "pods.yaml"
    path.write_text(
        "items:\n- metadata: {name: a, namespace: x, uid: u1}\n  spec: {nodeName: n1}\n"
        "- metadata: {name: b, namespace: x, uid: u2}\n  spec: {nodeName: n2}\n"
    )
    calls: list[int] = []
    pods = FilePods(path, "n1")
    pods.start(lambda: calls.append(1))
    try:
        assert [pod.key for pod in pods.index.pods] == ["x/a"]
        path.write_text("items: [")
        pods.poll()
        assert [pod.key for pod in pods.index.pods] == ["x/a"]
        assert "cannot be used, the last list is kept" in pods.health_error
        path.unlink()
        pods.poll()
        assert "No such file" in pods.health_error
        path.write_text("items: []")
        pods.poll()
        assert (pods.index.pods, pods.health_error) == ((), "")
    finally:
        pods.stop()
    assert len(calls) == 2


def test_ids_of_all_kinds_of_containers_are_known() -> None:
    pod = pod_of({
        "metadata": {"name": "a", "uid": "u", "namespace": "x"},
        "status": {
            "containerStatuses": [{"name": "c", "containerID": "containerd://new",
                                   "lastState": {"terminated": {"containerID": "containerd://old"}}}],
            "initContainerStatuses": [{"name": "i", "containerID": "docker://init"}],
            "ephemeralContainerStatuses": [{"name": "e", "containerID": "cri-o://debug"}],
        },
    })  # fmt: skip
    assert pod is not None
    assert pod.containers == {"new": "c", "old": "c", "init": "i", "debug": "e"}
    index = PodIndex([pod])
    assert index.find("none", "old") is index.find("u") is pod
    assert index.find("none", "none") is None


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["metadata", "spec", "status", "uid", "name", "containers", "containerID",
                         "containerStatuses", "annotations", "ownerReferences", "controller",
                         "lastState", "terminated", "items"]), inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


@examples(300)
@given(_json)
def test_any_json_is_a_list_of_pods_or_is_refused(row: object) -> None:
    try:
        pods = pods_of(row)
    except ValueError:
        return
    PodIndex(pods)
