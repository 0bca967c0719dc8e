"""``reveal analyze`` as users call it: recordings of a synthetic node, and the rows it writes."""

from __future__ import annotations

import csv
from pathlib import Path

from reveal_cli.__main__ import main
from reveal_contract.recording import RecordingWriter
from reveal_contract.wire import encode, gauges
from support.synthetic_node import Node


def run(*flags: object) -> int:
    """Run a command of ``reveal``; return its exit code."""
    return main([str(flag) for flag in flags])


def rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file."""
    with path.open() as file:
        return list(csv.DictReader(file))


def recording(path: Path, seconds: int, fault: range = range(0)) -> Path:
    """Write a recording in which segments are lost in the seconds of ``fault``."""
    node = Node(seed=5)
    loss = {"network.tcp.retrans_segs": 80.0, "network.tcp.out_segs": 3000.0}
    with RecordingWriter(path) as writer:
        for second in range(seconds):
            message = node.slice(loss if second in fault else None)
            writer.message(encode(message, gauges(node.table)), node.table)
    return path
