"""Shares of subjects: weights, quotas and cpusets of cgroups, nice values and autogroups."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from reveal_collector.ledger.programs import KEY_GROUP, KEY_SESSION
from reveal_collector.ledger.shares import (
    REREAD_S,
    CgroupShares,
    ProcessShares,
    ShareReader,
    nice_weight,
)
from reveal_collector.ledger.slots import Slot
from reveal_contract.cpu_shares import CpuGroup, CpuMember, CpuShares

POD = "/kubepods/burstable/pod1"
STAT = "7 (a ) b) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 {nice} 1 0 5 0 0{rest} 0 {policy} 0 0"


def put(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{text}\n")
    return root


@pytest.fixture
def unified(tmp_path: Path) -> Path:
    return put(
        tmp_path,
        {
            "cpuset.cpus.effective": "0-7",
            "kubepods/cpu.weight": "400",
            "kubepods/cpu.max": "max 100000",
            "kubepods/cpuset.cpus.effective": "0-7",
            "kubepods/burstable/cpu.weight": "100",
            f"{POD[1:]}/cpu.weight": "10",
            f"{POD[1:]}/cpu.max": "150000 100000",
            f"{POD[1:]}/cpuset.cpus.effective": "2-3",
            "idle.slice/cpu.weight": "0",
            "idle.slice/cpu.idle": "1",
            "user.slice/memory.max": "max",
        },
    )


def test_the_groups_of_a_pod_are_all_cgroups_above_it(unified: Path) -> None:
    assert CgroupShares({"unified": unified}).read("ml/a", POD) == (
        CpuMember("ml/a", POD, cpus="2-3"),
        (
            CpuGroup("/kubepods", "", 4096.0),
            CpuGroup("/kubepods/burstable", "/kubepods", 1024.0),
            CpuGroup(POD, "/kubepods/burstable", 102.4, 1.5),
        ),
    )


def test_a_name_that_is_no_text_leaves_the_collector_in_printable_form(tmp_path: Path) -> None:
    name = os.fsdecode(b"\xff.scope")
    put(tmp_path, {"cpuset.cpus.effective": "0-7", f"{name}/a/cpu.weight": "100",
                   f"{name}/cpu.weight": "100"})  # fmt: skip
    member, chain = CgroupShares({"unified": tmp_path}).read(name, f"/{name}/a")
    rows = CpuShares(chain, (member,)).to_rows()
    assert rows == {
        "groups": [
            {"path": r"/\xff.scope"},
            {"path": r"/\xff.scope/a", "parent": r"/\xff.scope"},
        ],
        "members": [{"subject": r"\xff.scope", "group": r"/\xff.scope/a"}],
    }
    json.dumps(rows, ensure_ascii=False).encode()


def test_a_cgroup_without_the_controller_is_no_group(unified: Path) -> None:
    assert CgroupShares({"unified": unified}).read("u", "/user.slice/a.scope") == (
        CpuMember("u"),
        (),
    )


def test_an_idle_cgroup_has_the_weight_of_the_idle_policy(unified: Path) -> None:
    _, (group,) = CgroupShares({"unified": unified}).read("i", "/idle.slice")
    assert group.weight == 3


def test_a_cpuset_of_a_cgroup_above_counts(unified: Path) -> None:
    member, _ = CgroupShares({"unified": unified}).read("c", f"{POD}/container")
    assert (member.group, member.cpus) == (POD, "2-3")


def test_version_1_has_a_hierarchy_for_each_controller(tmp_path: Path) -> None:
    cpu = {"cpu.shares": "1024", "job/cpu.shares": "4096", "job/cpu.cfs_quota_us": "50000"}
    cpu |= {"job/cpu.cfs_period_us": "100000"}
    cpu |= {"free/cpu.shares": "2", "free/cpu.cfs_quota_us": "-1"}
    sets = {"cpuset.effective_cpus": "0-1", "job/cpuset.effective_cpus": "0"}
    trees = {"cpu": put(tmp_path / "cpu", cpu), "cpuset": put(tmp_path / "cpuset", sets)}
    reader = CgroupShares({**trees, "unified": tmp_path})
    assert reader.read("j", "/job") == (
        CpuMember("j", "/job", cpus="0"),
        (CpuGroup("/job", "", 4096.0, 0.5),),
    )
    assert reader.read("f", "/free")[1] == (CpuGroup("/free", "", 2.0),)


def test_a_host_without_cgroups_has_no_groups() -> None:
    assert CgroupShares({}).read("a", "/a") == (CpuMember("a"), ())


def proc(tmp_path: Path, nice: int, policy: int = 0, autogroups: str = "1") -> Path:
    stat = STAT.format(nice=nice, policy=policy, rest=" 0" * 15)
    return put(
        tmp_path,
        {
            "sys/kernel/sched_autogroup_enabled": autogroups,
            "7/stat": stat,
            "7/autogroup": "/autogroup-12 nice -5",
        },
    )


@pytest.mark.parametrize("kind", [KEY_GROUP, KEY_SESSION])
def test_a_process_group_is_in_the_autogroup_of_its_session(tmp_path: Path, kind: int) -> None:
    group = CpuGroup("autogroup-12", "", nice_weight(-5))
    read = ProcessShares(proc(tmp_path, 19)).read("p", {kind | 7})
    assert read == (CpuMember("p", "autogroup-12", nice_weight(19)), (group,))


def test_without_autogroups_only_nice_counts(tmp_path: Path) -> None:
    read = ProcessShares(proc(tmp_path, 10, autogroups="0")).read("p", {KEY_GROUP | 7})
    assert read == (CpuMember("p", "", nice_weight(10)), ())


def test_a_process_of_the_idle_policy_has_its_weight(tmp_path: Path) -> None:
    member, _ = ProcessShares(proc(tmp_path, 0, policy=5)).read("p", {KEY_GROUP | 7})
    assert member.weight == 3


def test_a_leader_that_has_ended_leaves_the_defaults(tmp_path: Path) -> None:
    assert ProcessShares(proc(tmp_path, 5)).read("p", {KEY_GROUP | 8}) == (CpuMember("p"), ())


@pytest.mark.parametrize(("nice", "kernel"), [(-20, 88761), (0, 1024), (5, 335), (19, 15)])
def test_weights_of_nice_values_are_those_of_the_kernel(nice: int, kernel: int) -> None:
    assert nice_weight(nice) == pytest.approx(kernel, rel=0.02)


def test_new_subjects_are_read_immediately_and_all_after_ten_seconds(unified: Path) -> None:
    reader = ShareReader({"unified": unified}, unified)
    a, b = (Slot(name, 3, 3, frozenset()) for name in ("a", "b"))
    reader.update([a], {"a": "/kubepods"}, 100.0)
    (unified / "kubepods/cpu.weight").write_text("50")
    reader.update([a, b], {"a": "/kubepods", "b": "/idle.slice"}, 100.0 + REREAD_S / 2)
    assert [group.weight for group in reader.of(["a", "b"]).groups] == [4096, 3]
    assert reader.of(["b", "unknown"]).members == (CpuMember("b", "/idle.slice"),)
    reader.update([a, b], {"a": "/kubepods", "b": "/idle.slice"}, 100.0 + REREAD_S)
    assert [group.weight for group in reader.of(["a", "b"]).groups] == [512, 3]
    reader.update([b], {"b": "/idle.slice"}, 101.0 + REREAD_S)
    assert [member.subject for member in reader.of(["a", "b"]).members] == ["b"]
