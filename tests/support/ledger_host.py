"""Whether the ledger's programs can be loaded here, and what a process holds of them."""

from __future__ import annotations

import os
from pathlib import Path

from reveal_collector import native
from reveal_collector.kernel_interfaces.errors import Unsupported
from reveal_collector.ledger.names import hierarchy_of
from reveal_collector.ledger.permits import check_host
from reveal_collector.ledger.programs import Hierarchy
from reveal_collector.readers.source import Roots
from reveal_collector.subjects.cgroup_files import hierarchies


def why_not() -> str:
    """Return what prevents tests with real programs and cgroups; "" if nothing does."""
    roots = Roots()
    if os.geteuid() != 0:
        return "needs root, to make cgroups"
    if hierarchy_of(hierarchies(roots.cgroup))[1] is None:
        return "no cgroup hierarchy is mounted"
    try:
        check_host(roots, native.load().library)
    except Unsupported as error:
        return error.reason
    return ""


def is_in_root_cgroup() -> bool:
    """Return whether this process belongs to no cgroup but the root of the hierarchy."""
    hierarchy, _ = hierarchy_of(hierarchies(Roots().cgroup))
    controller = "" if hierarchy is Hierarchy.UNIFIED else hierarchy.name.lower()
    lines = Path("/proc/self/cgroup").read_text().splitlines()
    fields = [line.split(":", 2) for line in lines]
    return any(controller in names.split(",") and path == "/" for _, names, path in fields)


def bpf_descriptors() -> int:
    """Return how many programs, maps and links this process holds."""
    found = 0
    for entry in Path("/proc/self/fd").iterdir():
        try:
            found += "bpf" in str(entry.readlink())
        except OSError:
            continue
    return found


def is_removed(folder: Path) -> bool:
    """Remove a cgroup; return whether that was possible: its processes may still be ending."""
    try:
        folder.rmdir()
    except OSError:
        return False
    return True
