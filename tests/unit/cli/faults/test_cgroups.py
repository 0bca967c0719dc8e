from __future__ import annotations

from pathlib import Path

import pytest

from reveal_cli.faults import ledger as ledger_module
from reveal_cli.faults.cgroups import (
    Cgroup,
    disable_controllers,
    is_v2,
    leftovers,
    missing_controllers,
)
from reveal_cli.faults.ledger import Ledger


def _v1(root: Path) -> Cgroup:
    for controller in ("cpu,cpuacct", "memory", "blkio"):
        (root / controller).mkdir()
    for link in ("cpu", "cpuacct"):
        (root / link).symlink_to("cpu,cpuacct")
    group = Cgroup("job", root)
    group.create()
    for directory, name in (
        ("cpu", "cpu.cfs_quota_us"),
        ("cpu", "cpu.cfs_period_us"),
        ("memory", "memory.limit_in_bytes"),
        ("blkio", "blkio.throttle.read_bps_device"),
        ("blkio", "blkio.throttle.write_bps_device"),
    ):
        (root / directory / "job" / name).write_text("")
    return group


def _v2(root: Path) -> Cgroup:
    (root / "cgroup.controllers").write_text("cpu memory io pids")
    (root / "cgroup.subtree_control").write_text("")
    group = Cgroup("job", root)
    group.create()
    for name in ("cpu.max", "memory.max", "io.max"):
        (root / "job" / name).write_text("")
    return group


def test_version_1_spreads_over_the_hierarchies(tmp_path: Path) -> None:
    group = _v1(tmp_path)
    assert not is_v2(tmp_path)
    assert group.path == "/job"
    assert {path.parent.name for path in group.directories} == {"cpu,cpuacct", "memory", "blkio"}
    assert len(group.joins()) == 3


def test_version_1_limits(tmp_path: Path) -> None:
    group = _v1(tmp_path)
    group.limit_cpu(0.2)
    assert (tmp_path / "cpu/job/cpu.cfs_quota_us").read_text() == "20000"
    assert (tmp_path / "cpu/job/cpu.cfs_period_us").read_text() == "100000"
    group.limit_cpu(None)
    assert (tmp_path / "cpu/job/cpu.cfs_quota_us").read_text() == "-1"
    group.limit_memory(1 << 27)
    assert (tmp_path / "memory/job/memory.limit_in_bytes").read_text() == "134217728"
    group.limit_io("254:0", 100, 200)
    assert (tmp_path / "blkio/job/blkio.throttle.write_bps_device").read_text() == "254:0 200"


def test_version_2_limits(tmp_path: Path) -> None:
    group = _v2(tmp_path)
    assert group.directories == (tmp_path / "job",)
    group.limit_cpu(0.5)
    assert (tmp_path / "job/cpu.max").read_text() == "50000 100000"
    group.limit_cpu(None)
    assert (tmp_path / "job/cpu.max").read_text() == "max 100000"
    group.limit_memory(4096)
    assert (tmp_path / "job/memory.max").read_text() == "4096"
    group.limit_io("8:0", 1, 2)
    assert (tmp_path / "job/io.max").read_text() == "8:0 rbps=1 wbps=2"


def test_cpu_time_of_both_versions(tmp_path: Path) -> None:
    first, second = tmp_path / "1", tmp_path / "2"
    first.mkdir()
    second.mkdir()
    cpuacct, cpu_stat = _v1(first), _v2(second)
    (first / "cpuacct/job/cpuacct.usage").write_text("2500000000\n")
    (second / "job/cpu.stat").write_text("usage_usec 1500000\nuser_usec 1\n")
    assert cpuacct.cpu_seconds() == 2.5
    assert cpu_stat.cpu_seconds() == 1.5


def test_a_missing_controller_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("")
    (tmp_path / "cgroup.subtree_control").write_text("")
    group = Cgroup("job", tmp_path)
    group.create()
    with pytest.raises(OSError, match=r"job has no memory\.max"):
        group.limit_memory(1)


def test_leftovers_by_prefix(tmp_path: Path) -> None:
    _v1(tmp_path)
    for name in ("reveal-fault-a", "reveal-work-b", "other"):
        (tmp_path / "memory" / name).mkdir()
    assert [group.name for group in leftovers("reveal-fault-", tmp_path)] == ["reveal-fault-a"]


def test_controllers_of_version_2_that_a_run_enables_are_disabled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, base = tmp_path / "cgroup", tmp_path / "ledgers"
    root.mkdir()
    base.mkdir()
    (root / "cgroup.controllers").write_text("cpuset cpu io memory")
    (root / "cgroup.subtree_control").write_text("memory")
    assert missing_controllers(root) == ("cpu", "io")
    undone: list[tuple[str, ...]] = []
    monkeypatch.setattr(ledger_module, "disable_controllers", undone.append)
    ledger = Ledger("here", base)
    ledger.create(Cgroup("job", root))
    assert (root / "job").is_dir()
    ledger.close()
    assert undone == [("cpu", "io")]


def test_disabling_controllers_writes_each(tmp_path: Path) -> None:
    control = tmp_path / "cgroup.subtree_control"
    control.write_text("cpu io memory")
    disable_controllers(["io"], tmp_path)
    assert control.read_text() == "-io"


def test_version_1_has_no_controllers_to_enable(tmp_path: Path) -> None:
    _v1(tmp_path)
    assert missing_controllers(tmp_path) == ()
