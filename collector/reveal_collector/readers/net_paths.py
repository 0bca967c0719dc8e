"""Where the network files of the host are: per network namespace, so asked through process 1."""

from __future__ import annotations

import os
from pathlib import Path

from reveal_collector.readers.plan import Gated
from reveal_collector.readers.source import Roots

# What the protocols counted stands still while no interface, the loopback one among them,
# carried a packet.  What has another cause (a timer ran out) shows with the next packet.
CARRIED = Gated("network", leads=True)
COUNTED = Gated("network")


def net_file(roots: Roots, name: str) -> Path:
    """``/proc/1/net/NAME`` where it can be read, else the reader's own ``/proc/net/NAME``.

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
