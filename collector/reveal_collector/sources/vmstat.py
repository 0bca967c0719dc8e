"""``/proc/vmstat``: events of memory management, and page counts of its zones.

Units differ within the file (mm/vmstat.c).  ``nr_*`` levels are in pages, except for kernel stacks
(kB) and transparent huge pages (huge pages); ``pgpgin`` and ``pgpgout`` are in kB.
"""

from __future__ import annotations

from reveal_collector.readers.host_constants import host_constants
from reveal_collector.readers.source import Roots, Source
from reveal_collector.readers.textfile import (
    UNFIT,
    Layout,
    LayoutList,
    TokenSource,
    channel,
    is_number,
    rows,
)
from reveal_contract.catalogue import find
from reveal_contract.metric import Lane
from reveal_contract.names import snake

_KILOBYTES = {"pgpgin", "pgpgout", "nr_kernel_stack", "nr_shadow_call_stack"}
# limits that the kernel computes from other levels
_LEFT_OUT = {"nr_dirty_threshold", "nr_dirty_background_threshold"}


def sources(roots: Roots) -> list[Source]:
    def learn_here(text: str) -> Layout:
        return learn(text, host_constants(roots).page)

    return [TokenSource("vmstat", Lane.FAST, roots.proc / "vmstat", learn_here)]


def learn(text: str, page: int) -> Layout:
    layout: LayoutList = []
    for start, tokens in rows(text):
        if len(tokens) != 2 or not is_number(tokens[1]) or not (key := snake(tokens[0])):
            layout.append((start, UNFIT))
        elif key not in _LEFT_OUT:
            metric = f"memory.vm.{key}"
            layout.append((start + 1, channel(metric, scale=_scale(metric, key, page))))
    return layout


def _scale(metric: str, key: str, page: int) -> float:
    if key in _KILOBYTES:
        return 1024.0
    return float(page) if find(metric).unit == "bytes" else 1.0
