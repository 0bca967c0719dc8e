"""Memory: NUMA nodes, huge pages, swap, transparent huge pages.

Kernel: ABI/stable/sysfs-devices-node, admin-guide/mm/{hugetlbpage,transhuge,zswap}.rst;
proc_swaps(5).
"""

from __future__ import annotations

from pathlib import Path

from reveal_collector.facts import files
from reveal_collector.readers.host_constants import page_size
from reveal_collector.readers.source import Roots
from reveal_contract.facts import HugePool, Memory, NumaNode, Swap


def memory(roots: Roots) -> Memory:
    """Return the layout and the settings of this host's memory."""
    nodes = roots.sys / "devices/system/node"
    huge = roots.sys / "kernel/mm/transparent_hugepage"
    zswap = files.read_text(roots.sys / "module/zswap/parameters/enabled")
    return Memory(
        total=total(files.read_text(roots.proc / "meminfo"), "MemTotal:"),
        page=page_size(roots),
        nodes=tuple(_node(nodes, number) for number in files.numbered(nodes, "node")),
        huge=tuple(huge_pools(roots)),
        swaps=swaps(files.read_text(roots.proc / "swaps")),
        zswap=zswap == "Y" if zswap else None,
        thp=files.selected_choice(files.read_text(huge / "enabled")),
        thp_defrag=files.selected_choice(files.read_text(huge / "defrag")),
    )


def total(meminfo: str, key: str) -> int | None:
    """Return the bytes in a line of meminfo, of the host or of a node."""
    for line in meminfo.splitlines():
        words = line.split()
        if key in words and words[-1] == "kB" and words[-2].isdecimal():
            return int(words[-2]) * 1024
    return None


def _node(folder: Path, number: int) -> NumaNode:
    path = folder / f"node{number}"
    distances = files.read_text(path / "distance").split()
    return NumaNode(
        node=number,
        cpus=files.cpu_list(path / "cpulist"),
        memory=total(files.read_text(path / "meminfo"), "MemTotal:"),
        distances=tuple(int(word) for word in distances if word.isdecimal()),
    )


def huge_pools(roots: Roots) -> list[HugePool]:
    """Return the pools that have pages: the host's and, with several nodes, those of each node."""
    found = _pools(roots.sys / "kernel/mm/hugepages", None)
    nodes = roots.sys / "devices/system/node"
    numbers = files.numbered(nodes, "node")
    if len(numbers) > 1:
        for number in numbers:
            found += _pools(nodes / f"node{number}/hugepages", number)
    return [pool for pool in found if pool.total != 0]


def _pools(folder: Path, node: int | None) -> list[HugePool]:
    """Return the pools in a folder; numbers that cannot be read are None."""
    found = []
    for name in files.names(folder):
        size = name.removeprefix("hugepages-").removesuffix("kB")
        if not size.isdecimal():
            continue
        names = ("nr_hugepages", "free_hugepages", "resv_hugepages")
        total, free, reserved = (files.read_number(folder / name / each) for each in names)
        if node is not None:
            reserved = 0  # only the host has the file
        free = free if reserved is not None else None  # without them no page is known to be idle
        found.append(HugePool(int(size) * 1024, node, total, free, reserved or 0))
    return found


def swaps(text: str) -> tuple[Swap, ...]:
    """Return the devices of ``/proc/swaps``; blanks in a file's name are octal escapes."""
    rows = (line.split() for line in text.split("\n")[1:])
    return tuple(
        Swap(row[0], row[1], int(row[2]) * 1024)
        for row in rows
        if len(row) >= 5 and row[2].isdecimal()
    )
