"""``reveal record`` as users call it: the recording is of what the flags choose."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from reveal_cli.recordings import Slices
from reveal_contract.catalogue import find
from support.hosts import complete_hosts
from support.hosts.tree import Tree

SECONDS = 2


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The flags that choose a host that is a tree of files."""
    tree = Tree(tmp_path_factory.mktemp("host"))
    complete_hosts.dgx_h100(tree)
    return tree.flags("n7")


def record(path: Path, *flags: str) -> tuple[list[str], set[str]]:
    """Record for two seconds; return the node of each slice, and the sources of its channels.

    The collector's own metrics are left out: no flag selects them.
    """
    command = [sys.executable, "-m", "reveal_cli", "record", str(path)]
    subprocess.run([*command, "--duration", f"{SECONDS}s", *flags], check=True, timeout=40)
    nodes, metrics = [], set[str]()
    for message, table in Slices(path):
        nodes.append(message.node)
        metrics |= {channel.metric for channel in (*table.fast, *table.slow)}
    return nodes, {find(metric).source for metric in metrics} - {"own"}


def test_a_recording_is_of_the_node_and_sources_of_its_flags(
    host: list[str], tmp_path: Path
) -> None:
    flags = [*host, "--include-source", "meminfo", "--include-source", "vmstat"]
    nodes, sources = record(tmp_path / "both", *flags)
    assert set(nodes) == {"n7"}
    assert 1 <= len(nodes) <= SECONDS + 1
    assert sources == {"meminfo", "vmstat"}
    _, sources = record(tmp_path / "less", *flags, "--exclude-source", "meminfo")
    assert sources == {"vmstat"}
