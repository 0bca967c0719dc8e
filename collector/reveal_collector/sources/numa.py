"""``numastat`` and ``meminfo`` of each NUMA node: origin of its allocations, and memory use.

Kernel: Documentation/admin-guide/numastat.rst.  The node's meminfo has the values of the host's
for one node; a host with one node has both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from reveal_collector.devices.numa_nodes import numa_nodes
from reveal_collector.readers.joined import Joined
from reveal_collector.readers.source import Roots, Source
from reveal_collector.readers.sysfs_attributes import entries
from reveal_collector.readers.textfile import UNFIT, Layout, TokenSource, channel, is_number, rows
from reveal_contract.metric import Lane
from reveal_contract.names import snake


def sources(roots: Roots) -> list[Source]:
    folder = roots.sys / "devices/system/node"
    absent = f"{folder} has no NUMA node"
    # nodes of CXL memory and of GPUs come online when a driver or an administrator adds them
    return [
        Joined("numa", Lane.SLOW, lambda: list(_files(folder)), absent, lambda: entries(folder))
    ]


def _files(folder: Path) -> Iterator[Source]:
    for number, path in numa_nodes(folder).items():
        for file, learn in (("numastat", learn_numastat), ("meminfo", learn_meminfo)):
            yield _file(path / file, number, learn)


def _file(path: Path, node: str, learn: Callable[[str, str], Layout]) -> Source:
    return TokenSource("numa", Lane.SLOW, path, lambda text: learn(text, node))


def learn_numastat(text: str, node: str) -> Layout:
    """Map lines like ``numa_hit 2514105``."""
    return [
        (start + 1, channel(f"memory.numa.{key.removeprefix('numa_')}", node))
        if len(tokens) == 2 and is_number(tokens[1]) and (key := snake(tokens[0]))
        else (start, UNFIT)
        for start, tokens in rows(text)
    ]


def learn_meminfo(text: str, node: str) -> Layout:
    """Map lines like ``Node 0 MemFree:  4245812 kB``."""
    return [
        (start + 3, channel(f"memory.numa.{key}", node, 1024.0 if tokens[-1] == "kB" else 1.0))
        if len(tokens) >= 4
        and tokens[0] == "Node"
        and is_number(tokens[3])
        and (key := snake(tokens[2]))
        else (start, UNFIT)
        for start, tokens in rows(text)
    ]
