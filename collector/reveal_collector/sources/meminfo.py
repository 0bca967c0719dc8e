"""``/proc/meminfo``: the current use of the memory of the host.

The names depend on the kernel; MemAvailable exists since 3.14.  Most values lag by up to a second,
because CPUs add their share of a change only then (``vm.stat_interval``).  Therefore they are
read once a second.  The events and page counts of ``vmstat`` show what happens in between.
"""

from __future__ import annotations

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
from reveal_contract.metric import Lane
from reveal_contract.names import snake

# address ranges, not memory
_LEFT_OUT = {"vmalloc_total", "vmalloc_chunk"}


def sources(roots: Roots) -> list[Source]:
    return [TokenSource("meminfo", Lane.SLOW, roots.proc / "meminfo", learn)]


def learn(text: str) -> Layout:
    layout: LayoutList = []
    for start, tokens in rows(text):
        key = snake(tokens[0])
        if not key or len(tokens) < 2 or not is_number(tokens[1]):
            layout.append((start, UNFIT))
        elif key not in _LEFT_OUT:
            scale = 1024.0 if tokens[-1] == "kB" else 1.0
            layout.append((start + 1, channel(f"memory.{key}", scale=scale)))
    return layout
