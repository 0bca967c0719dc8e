"""Table files as other tools write them, and the single table that is read from one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from reveal_analyzer.tables.ingest.reader import Dataset
from reveal_analyzer.tables.scoring.table import Table

Write = Callable[..., Path]  # content and, if it matters, the name of the file


def lone(data: Dataset) -> Table:
    """Return the table of a file that has one node."""
    (node,) = data.nodes
    return node.table
