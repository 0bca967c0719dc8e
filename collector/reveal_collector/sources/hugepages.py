"""Huge page pools by page size, for the host and for each NUMA node, in bytes.

Kernel: Documentation/admin-guide/mm/hugetlbpage.rst.  No process can use a free page of a pool
as ordinary memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from reveal_collector.devices.numa_nodes import numa_nodes
from reveal_collector.readers.joined import Joined, NumberFiles
from reveal_collector.readers.source import Roots, Source
from reveal_collector.readers.sysfs_attributes import entries
from reveal_collector.readers.textfile import channel
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane

_POOL = re.compile(r"hugepages-(\d+)kB\Z")
_REMEDY = "use a kernel with CONFIG_HUGETLBFS"
_HOST = {
    "nr_hugepages": "memory.hugepages.total",
    "free_hugepages": "memory.hugepages.free",
    "resv_hugepages": "memory.hugepages.reserved",
    "surplus_hugepages": "memory.hugepages.surplus",
}
_NODE = {
    "nr_hugepages": "memory.hugepages.numa.total",
    "free_hugepages": "memory.hugepages.numa.free",
    "surplus_hugepages": "memory.hugepages.numa.surplus",
}


def sources(roots: Roots) -> list[Source]:
    pools, nodes = roots.sys / "kernel/mm/hugepages", roots.sys / "devices/system/node"
    absent = f"{pools} does not exist"
    # The page sizes with a pool do not change after boot, but nodes with pools may be added.
    return [
        Joined(
            "hugepages", Lane.SLOW, lambda: list(_parts(pools, nodes)), absent,
            lambda: entries(nodes),
        )
    ]  # fmt: skip


def _parts(pools: Path, nodes: Path) -> Iterator[Source]:
    yield _part(pools, _HOST, "")
    for number, folder in numa_nodes(nodes).items():
        yield _part(folder / "hugepages", _NODE, f"/{number}")


def _part(folder: Path, metrics: Mapping[str, str], suffix: str) -> Source:
    """Return the pools in a folder; the instances are their page sizes with this suffix."""

    def find() -> dict[Path, Channel]:
        return {
            path / file: channel(metric, f"{size}kB{suffix}", size * 1024.0)
            for path, size in _pools(folder)
            for file, metric in metrics.items()
        }

    return NumberFiles("hugepages", Lane.SLOW, folder, find, _REMEDY, lasting=True)


def _pools(folder: Path) -> list[tuple[Path, int]]:
    if not folder.is_dir():
        return []
    named = [(path, _POOL.match(path.name)) for path in sorted(folder.iterdir())]
    return [(path, int(match[1])) for path, match in named if match]
