"""The identity of the running kernel's boot."""

from __future__ import annotations

import os

from reveal_collector.readers.source import Roots
from reveal_collector.readers.sysfs_attributes import read_text


def boot_id(roots: Roots) -> bytes:
    """Return 16 bytes that change with every boot (proc(5), random/boot_id).

    They are random where the kernel does not provide them.
    """
    try:
        text = read_text(roots.proc / "sys/kernel/random/boot_id")
        known = bytes.fromhex(text.replace("-", ""))
    except ValueError:
        known = b""
    return known if len(known) == 16 else os.urandom(16)
