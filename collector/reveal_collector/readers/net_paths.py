"""Paths of the host's network files: they are per network namespace, so process 1's are read."""

from __future__ import annotations

import os
from pathlib import Path

from reveal_collector.readers.plan import Gated
from reveal_collector.readers.source import Roots

# Protocol counters do not change while no interface, including loopback, carries a packet.
# Counts with another cause (an expired timer) are read with the next packet.
CARRIED = Gated("network", leads=True)
COUNTED = Gated("network")


def net_file(roots: Roots, name: str) -> Path:
    """Return ``/proc/1/net/NAME`` if it is readable, else ``/proc/net/NAME``.

    ``/proc/net`` is ``self/net``: in a pod it shows the pod's namespace, not the host's.
    """
    first = roots.proc / "1" / "net" / name
    try:
        with first.open("rb") as file:
            if os.read(file.fileno(), 1):
                return first
    except OSError:
        pass
    return roots.proc / "net" / name
