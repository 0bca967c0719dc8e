"""NUMA nodes of a host (``/sys/devices/system/node``)."""

from __future__ import annotations

import re
from pathlib import Path

_NODE = re.compile(r"node(\d+)\Z")


def numa_nodes(folder: Path) -> dict[str, Path]:
    """Return the folders of the NUMA nodes by number; none where the folder cannot be read."""
    try:
        found = [(named[1], path) for path in folder.iterdir() if (named := _NODE.match(path.name))]
    except OSError:
        return {}
    return dict(sorted(found, key=lambda item: int(item[0])))
