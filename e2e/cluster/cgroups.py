"""The cgroups of nodes: one in each hierarchy of the machine, made before a node starts."""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
_CONTROLLERS = ("cpu", "cpuset", "memory", "pids", "io", "hugetlb")
_GONE_S = 8.0


@dataclass(frozen=True)
class Hierarchy:
    """A mounted cgroup file system: ``options`` are those of mount(8)."""

    folder: Path
    version: int
    options: str = ""


def hierarchies() -> list[Hierarchy]:
    """All of this machine, outermost first."""
    found: dict[Path, Hierarchy] = {}
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, where, kind, options = line.split()[:4]
        folder = Path(where)
        if kind == "cgroup2":
            found[folder] = Hierarchy(folder, 2)
        elif kind == "cgroup" and folder.is_relative_to(ROOT):
            found[folder] = Hierarchy(folder, 1, _controllers(options))
    return [found[folder] for folder in sorted(found)]


def make(name: str) -> list[Path]:
    """A cgroup of that name in each hierarchy."""
    folders = []
    for hierarchy in hierarchies():
        if hierarchy.version == 2 and hierarchy.folder == ROOT:
            _hand_down(hierarchy.folder)
        folder = hierarchy.folder / name
        folder.mkdir(exist_ok=True)
        # a cpuset of version 1 takes no process before these are written
        for file in ("cpuset.mems", "cpuset.cpus"):
            if hierarchy.version == 1 and (folder / file).exists():
                (folder / file).write_text((hierarchy.folder / file).read_text())
        folders.append(folder)
    return folders


def enter(folders: list[Path]) -> None:
    """This process, and all that it starts."""
    for folder in folders:
        (folder / "cgroup.procs").write_text(str(os.getpid()))


def mounts() -> list[tuple[str, ...]]:
    """Commands that mount, inside of a node, what it sees as the whole tree."""
    found = hierarchies()
    if [item.folder for item in found] == [ROOT]:
        return [("mount", "-t", "cgroup2", "cgroup2", str(ROOT))]
    commands: list[tuple[str, ...]] = [
        ("mount", "-t", "tmpfs", "-o", "mode=755", "cgroup", str(ROOT))
    ]
    for item in found:
        kind = ("-t", "cgroup2") if item.version == 2 else ("-t", "cgroup", "-o", item.options)
        commands.append(("mkdir", "-p", str(item.folder)))
        commands.append(("mount", *kind, "cgroup", str(item.folder)))
    return commands


def delegate() -> None:
    """Inside of a node with version 2 alone: a cgroup with processes hands no controllers down."""
    if (ROOT / "cgroup.controllers").exists():
        inner = ROOT / "node"
        inner.mkdir(exist_ok=True)
        enter([inner])
        _hand_down(ROOT)


def remove(name: str) -> list[Path]:
    """What could not be removed, because processes in it would not end."""
    deadline = time.monotonic() + _GONE_S
    while True:
        left = [
            hierarchy.folder / name
            for hierarchy in hierarchies()
            if not _removed(hierarchy.folder / name)
        ]
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.1)


def _removed(folder: Path) -> bool:
    for path, _, _ in os.walk(folder, topdown=False):
        with contextlib.suppress(OSError):
            Path(path).rmdir()
    return not folder.exists()


def _hand_down(folder: Path) -> None:
    for name in _CONTROLLERS:
        with contextlib.suppress(OSError):
            (folder / "cgroup.subtree_control").write_text(f"+{name}")


def _controllers(options: str) -> str:
    """Of a mount's options those that name the hierarchy."""
    common = {"rw", "ro", "relatime", "noatime", "nosuid", "nodev", "noexec", "clone_children"}
    controllers = [
        item for item in options.split(",") if item not in common and "release_agent" not in item
    ]
    named = [item for item in controllers if item.startswith("name=")]
    return ",".join(["none", *named] if named else controllers)
