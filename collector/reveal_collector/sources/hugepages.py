"""Huge page pools by page size, for the host and for each NUMA node, in bytes.

Kernel: Documentation/admin-guide/mm/hugetlbpage.rst.  No process can use a free page of a pool
as ordinary memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from reveal_collector.devices.numa_nodes import numa_nodes
from reveal_collector.readers.joined import NumberFiles
from reveal_collector.readers.source import Roots, Source
from reveal_collector.readers.textfile import channel
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane

_POOL = re.compile(r"hugepages-(\d+)kB\Z")
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
    pools, node_folder = roots.sys / "kernel/mm/hugepages", roots.sys / "devices/system/node"

    def find() -> dict[Path, Channel]:
        return dict(_files(pools, node_folder))

    remedy = "use a kernel with CONFIG_HUGETLBFS"
    # The page sizes with a pool do not change after boot.
    return [NumberFiles("hugepages", Lane.SLOW, pools, find, remedy, lasting=True)]


def _files(pools: Path, node_folder: Path) -> Iterator[tuple[Path, Channel]]:
    for path, size in _pools(pools):
        for file, metric in _HOST.items():
            yield path / file, channel(metric, f"{size}kB", size * 1024.0)
    for number, folder in numa_nodes(node_folder).items():
        for path, size in _pools(folder / "hugepages"):
            for file, metric in _NODE.items():
                yield path / file, channel(metric, f"{size}kB/{number}", size * 1024.0)


def _pools(folder: Path) -> list[tuple[Path, int]]:
    if not folder.is_dir():
        return []
    named = [(path, _POOL.match(path.name)) for path in sorted(folder.iterdir())]
    return [(path, int(match[1])) for path, match in named if match]
