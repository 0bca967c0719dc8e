"""``/proc/vmstat``: events of memory management, and page counts of its zones.

Units differ within the file (mm/vmstat.c).  ``nr_*`` levels are in pages, except for kernel stacks
(kB) and transparent huge pages (huge pages); ``pgpgin`` and ``pgpgout`` are in kB.
"""

from __future__ import annotations

import os

from reveal_collector.readers.source import Roots, Source
from reveal_collector.readers.textfile import Layout, TokenSource, channel, is_number, rows
from reveal_contract.catalogue import find
from reveal_contract.metric import Lane
from reveal_contract.names import snake

_KILOBYTES = {"pgpgin", "pgpgout", "nr_kernel_stack", "nr_shadow_call_stack"}
# limits that the kernel computes from other levels
_LEFT_OUT = {"nr_dirty_threshold", "nr_dirty_background_threshold"}


def sources(roots: Roots) -> list[Source]:
    return [TokenSource("vmstat", Lane.FAST, roots.proc / "vmstat", learn)]


def learn(text: str) -> Layout:
    return [
        (start + 1, channel(f"memory.vm.{key}", scale=_scale(f"memory.vm.{key}", key)))
        for start, tokens in rows(text)
        if len(tokens) == 2 and is_number(tokens[1])
        if (key := snake(tokens[0])) and key not in _LEFT_OUT
    ]


def _scale(metric: str, key: str) -> float:
    if key in _KILOBYTES:
        return 1024.0
    return float(os.sysconf("SC_PAGE_SIZE")) if find(metric).unit == "bytes" else 1.0
