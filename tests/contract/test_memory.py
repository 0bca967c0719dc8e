"""The memory of a process: that of the host, or of the tightest cgroup."""

from __future__ import annotations

from pathlib import Path

import pytest

from reveal_contract.runtime.memory import usable_bytes

MIB = 1 << 20


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    root = tmp_path / "proc"
    (root / "self").mkdir(parents=True)
    (root / "meminfo").write_text("MemTotal: 4096000 kB\nMemAvailable:    2048 kB\n")
    return root


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_without_a_limit_it_is_what_the_host_has_available(proc: Path, tmp_path: Path) -> None:
    write(proc / "self" / "cgroup", "0::/a.slice\n")
    write(tmp_path / "cgroup" / "a.slice" / "memory.max", "max\n")
    assert usable_bytes(proc, tmp_path / "cgroup") == 2 * MIB


def test_the_tightest_limit_of_the_cgroups_counts(proc: Path, tmp_path: Path) -> None:
    write(proc / "self" / "cgroup", "0::/a.slice/b.scope\n")
    write(tmp_path / "cgroup" / "a.slice" / "memory.max", f"{MIB}\n")
    write(tmp_path / "cgroup" / "a.slice" / "b.scope" / "memory.max", f"{5 * MIB}\n")
    assert usable_bytes(proc, tmp_path / "cgroup") == MIB


def test_a_container_that_sees_its_cgroup_as_the_root(proc: Path, tmp_path: Path) -> None:
    write(proc / "self" / "cgroup", "0::/\n")
    write(tmp_path / "cgroup" / "memory.max", f"{MIB}\n")
    assert usable_bytes(proc, tmp_path / "cgroup") == MIB


def test_cgroups_of_version_1(proc: Path, tmp_path: Path) -> None:
    write(proc / "self" / "cgroup", "5:cpu,cpuacct:/pod\n4:memory:/pod/c1\n")
    write(tmp_path / "cgroup" / "memory" / "memory.limit_in_bytes", f"{MIB}\n")
    assert usable_bytes(proc, tmp_path / "cgroup") == MIB


def test_what_cannot_be_read_is_unknown(tmp_path: Path) -> None:
    assert usable_bytes(tmp_path / "none", tmp_path / "none") == 0
