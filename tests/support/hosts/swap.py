"""Swap devices, and compressed memory disks to swap to."""

from __future__ import annotations

from support.hosts.tree import Moment, Tree

_HEADING = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
_GIB = 1 << 30


def add_swaps(tree: Tree, *devices: tuple[str, int, int]) -> None:
    """``/proc/swaps``: path, bytes and bytes in use of each; none is a heading alone."""
    lines = [
        f"{path:<40}{'partition' if path.startswith('/dev') else 'file'}\t"
        f"{size >> 10}\t\t{used >> 10}\t\t{-2 - index}\n"
        for index, (path, size, used) in enumerate(devices)
    ]
    tree.write("proc/swaps", _HEADING + "".join(lines))


def add_zram(tree: Tree, number: int = 0, columns: int = 9, backing: bool = False) -> None:
    """A zram disk half full; ``columns`` of ``mm_stat``: 7 before Linux 4.19, 8 before 5.15."""
    folder = f"sys/block/zram{number}"
    tree.write(f"{folder}/disksize", 8 * _GIB)
    tree.write(f"{folder}/initstate", 1)

    def levels(now: Moment) -> str:
        stored = now.level(4 * _GIB, _GIB // 4)
        numbers = (stored, stored // 3, stored // 3 + 4096, 0, 2 * _GIB, 900, 20, 60, 80)
        return " ".join(f"{number:>8}" for number in numbers[:columns]) + "\n"

    tree.write(f"{folder}/mm_stat", levels)
    tree.write(f"{folder}/io_stat", "       0        0        0     1200\n")
    if backing:
        tree.write(f"{folder}/bd_stat", "     256      100      400\n")
