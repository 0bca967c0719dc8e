"""Starts in subjects: a container of a known pod, or a unit that is restarted."""

from __future__ import annotations

from pathlib import Path

import pytest

from reveal_collector.kernel_interfaces.errors import LayoutChanged, Unsupported
from reveal_collector.subjects.cgroup_files import hierarchies
from reveal_collector.subjects.starts import SubjectStarts
from reveal_collector.subjects.tracker import SubjectSelection, SubjectTracker

UID = "1b2c3d4e-5f60-4718-8a9b-0c1d2e3f4a5b"
POD = f"kubepods/burstable/pod{UID}"
UNIT = "system.slice/train.service"
STATIC = "5d41402abc4b2a76b9719d911017c592"
ID, ID2, PAUSE = "a1" * 32, "b2" * 32, "c3" * 32


def add(root: Path, path: str, procs: str = "42\n") -> None:
    folder = root / path
    folder.mkdir(parents=True, exist_ok=True)
    for each in (root, *(root / part for part in (path, POD) if (root / part).exists())):
        (each / "cgroup.controllers").write_text("cpu\n")
        (each / "cpu.stat").write_text("usage_usec 1000\n")
    (folder / "cgroup.procs").write_text(procs)


def end(root: Path, path: str) -> None:
    """Remove a cgroup; its folder stays elsewhere, so that its inode is not given again."""
    (root / path).rename(root.parent / f"ended-{len(list(root.parent.iterdir()))}")


class Host:
    """A tracker of cgroups of version 2 that walks every second, and the source."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.tracker = SubjectTracker(hierarchies(root), SubjectSelection())
        self.tracker._users = 1  # kept up by the test, not by a thread
        self.now = 0.0
        self.tracker.update(self.now)
        self.source = SubjectStarts(self.tracker)
        self.source.open()

    def walk(self, seconds: float = 1.0) -> dict[str, int | None]:
        """Return the counts after the next walk, by instance."""
        self.now += seconds
        self.tracker.update(self.now)
        try:
            values = self.source.read()
        except LayoutChanged:
            values = self.source.read()
        names = (channel.instance for channel in self.source.channels)
        return dict(zip(names, values, strict=True))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "cgroup"
    add(folder, f"{POD}/{PAUSE}")
    add(folder, f"{POD}/{ID}")
    add(folder, UNIT)
    return folder


def test_a_container_with_another_id_is_a_start_in_its_pod(root: Path) -> None:
    host = Host(root)
    quiet = {f"pod:{UID}": 0, f"/{UNIT}": 0}
    assert host.walk() == quiet
    end(root, f"{POD}/{ID}")
    assert host.walk() == quiet
    add(root, f"{POD}/{ID2}", procs="")
    assert host.walk() == quiet | {f"pod:{UID}": 1}
    (root / POD / ID2 / "cgroup.procs").write_text("43\n")
    assert host.walk() == quiet | {f"pod:{UID}": 1}
    assert host.walk(90.0) == quiet | {f"pod:{UID}": 1}


def test_a_container_that_seems_empty_for_long_is_no_start_when_it_works_again(root: Path) -> None:
    host = Host(root)
    (root / POD / ID / "cgroup.procs").write_text("")
    host.walk(90.0)
    (root / POD / ID / "cgroup.procs").write_text("42\n")
    assert host.walk()[f"pod:{UID}"] == 0


def test_cgroups_inside_a_container_are_no_starts(root: Path) -> None:
    host = Host(root)
    add(root, f"{POD}/{ID}/system.slice/ssh.service")
    assert host.walk()[f"pod:{UID}"] == 0


def test_a_unit_that_is_restarted_starts_again(root: Path) -> None:
    host = Host(root)
    end(root, UNIT)
    add(root, UNIT)
    assert host.walk() == {f"pod:{UID}": 0, f"/{UNIT}": 1}
    end(root, UNIT)
    host.walk()
    add(root, UNIT)
    assert host.walk()[f"/{UNIT}"] == 2


def test_a_new_pod_counts_no_start_of_its_own(root: Path) -> None:
    host = Host(root)
    add(root, f"kubepods/pod{STATIC}/{ID2}")
    assert host.walk() == {f"pod:{UID}": 0, f"pod:{STATIC}": 0, f"/{UNIT}": 0}


def test_a_subject_that_is_gone_is_forgotten(root: Path) -> None:
    host = Host(root)
    end(root, UNIT)
    assert host.walk(90.0).keys() == {f"pod:{UID}"}
    assert host.walk(90.0).keys() == {f"pod:{UID}"}
    assert set(host.tracker.starts.by_instance) == {f"pod:{UID}"}


def test_without_cgroups_there_are_no_starts(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="no cgroup hierarchy"):
        SubjectStarts(SubjectTracker({}, SubjectSelection())).open()
