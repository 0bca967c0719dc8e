"""Software RAID arrays (md) with their disks."""

from __future__ import annotations

from collections.abc import Sequence

from support.hosts.tree import Tree


def add_array(
    tree: Tree, name: str = "md0", level: str = "raid5", disks: Sequence[str] = ("sda", "sdb")
) -> str:
    """Add an array that does nothing; return its folder."""
    folder = f"sys/block/{name}/md"
    tree.write(f"{folder}/level", f"{level}\n")
    tree.write(f"{folder}/array_state", "clean\n")
    for disk in disks:
        tree.write(f"{folder}/dev-{disk}/state", "in_sync\n")
        tree.write(f"{folder}/dev-{disk}/errors", 0)
    if level not in ("linear", "raid0"):
        tree.write(f"{folder}/degraded", 0)
        tree.write(f"{folder}/sync_action", "idle\n")
        tree.write(f"{folder}/sync_speed", "none\n")
        tree.write(f"{folder}/mismatch_cnt", 0)
    return folder
