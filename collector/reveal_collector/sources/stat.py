"""``/proc/stat``: CPU time in ticks, interrupts, context switches, forks, run queue.

The columns are described in the kernel's Documentation/filesystems/proc.rst, section 1.8.
``guest`` is part of ``user``, ``guest_nice`` of ``nice``; kernels before 2.6.33 do not have the
last columns.  ``idle`` and ``iowait`` may decrease by a tick.
"""

from __future__ import annotations

from reveal_collector.devices.per_cpu import fold_by
from reveal_collector.readers.host_constants import ticks_per_second
from reveal_collector.readers.plan import TextForm
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

TIMES = (
    "user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal",
    "guest", "guest_nice",
)  # fmt: skip
BUSY = ("cpu.user", "cpu.nice", "cpu.system", "cpu.irq", "cpu.softirq", "cpu.steal")
TOTALS = {
    "ctxt": "cpu.context_switches",
    "processes": "cpu.forks",
    "procs_running": "cpu.procs_running",
    "procs_blocked": "storage.procs_blocked",
    "intr": "cpu.interrupts.total",
    "softirq": "cpu.softirqs.total",
}
# After its total, intr lists each interrupt: thousands of zeros on a large host.
_FORM = TextForm(truncate=(b"intr",))


def sources(roots: Roots) -> list[Source]:
    def learn_here(text: str) -> Layout:
        return learn(text, 1e9 / ticks_per_second(roots))

    arrange, path = fold_by(roots.sys, combined={"cpu.busy": BUSY}), roots.proc / "stat"
    return [TokenSource("stat", Lane.FAST, path, learn_here, form=_FORM, arrange=arrange)]


def learn(text: str, tick: float) -> Layout:
    """Map the times of each CPU, in clock ticks of so many nanoseconds, and totals of the host."""
    layout: LayoutList = []
    for start, tokens in rows(text):
        label = tokens[0]
        if label.startswith("cpu"):
            layout += [
                (start + index, channel(f"cpu.{time}", label[3:], tick))
                for index, (time, token) in enumerate(zip(TIMES, tokens[1:], strict=False), 1)
                if is_number(token)
            ]
            if not all(map(is_number, tokens[1 : len(TIMES) + 1])):
                layout.append((start, UNFIT))
        elif label in TOTALS and len(tokens) > 1 and is_number(tokens[1]):
            layout.append((start + 1, channel(TOTALS[label])))
        elif label in TOTALS:
            layout.append((start, UNFIT))
    return layout
