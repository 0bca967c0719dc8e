"""``/proc/pressure``: time that tasks waited for a resource (kernel: accounting/psi.rst).

Only ``total`` (microseconds) is read, as the averages change only every two seconds.  ``full`` of
the CPU is always 0 for the whole host and left out.  Kernels before 4.20 have no PSI, and others
can be built or booted without it.

On a node that is a container itself (kind), these files show the machine.  The values of the node
are in the root of its cgroup tree, in the same format (cgroup-v2.rst), and are read instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from reveal_collector.readers.joined import Joined
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
from reveal_collector.subjects.cgroup_files import node_container_root
from reveal_contract.metric import Lane

_REMEDY = "boot with psi=1 on a kernel built with CONFIG_PSI (4.20 or later)"
_FILES = {
    "cpu": {"some": "cpu.pressure.some"},
    "memory": {"some": "memory.pressure.some", "full": "memory.pressure.full"},
    "io": {"some": "storage.pressure.some", "full": "storage.pressure.full"},
    "irq": {"full": "cpu.pressure.irq"},
}
_NS_PER_US = 1000.0
_FORM = TextForm(blanks=b"=", words=False)


def sources(roots: Roots) -> list[Source]:
    node = node_container_root(roots)
    folder = node or roots.proc / "pressure"
    suffix = ".pressure" if node else ""
    absent = f"{folder} does not exist"

    def find() -> list[Source]:
        return [_file(folder, name, suffix) for name in _FILES]

    def present() -> object:
        # a cgroup gets and loses its files with cgroup.pressure (cgroup-v2.rst)
        return [(folder / f"{name}{suffix}").exists() for name in _FILES]

    return [Joined("psi", Lane.FAST, find, absent, present)]


def _file(folder: Path, name: str, suffix: str) -> Source:
    def learn_this(text: str) -> Layout:
        return learn(text, _FILES[name])

    path = folder / f"{name}{suffix}"
    return TokenSource("psi", Lane.FAST, path, learn_this, _REMEDY, form=_FORM)


def learn(text: str, metrics: Mapping[str, str]) -> Layout:
    """Map lines like ``some avg10 0.00 ... total 1234``; the word before the number is watched."""
    columns: LayoutList = []
    for start, tokens in rows(text):
        metric = metrics.get(tokens[0])
        if metric and tokens[-2:-1] == ["total"] and is_number(tokens[-1]):
            last = start + len(tokens) - 1
            columns += [(start, None), (last - 1, None)]
            columns.append((last, channel(metric, scale=_NS_PER_US)))
        elif metric:
            columns.append((start, UNFIT))
    return columns
