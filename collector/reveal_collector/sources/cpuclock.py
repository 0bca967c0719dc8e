"""CPU clock that is finer than ticks: ``cpu.run_time`` in nanoseconds.

``/proc/stat`` counts ticks of 10 ms.  Over 100 ms the use of a CPU then has only eleven possible
values, and work shorter than a tick is mostly missed.  In order of preference:
``/proc/schedstat`` (ns; it also has ``cpu.run_delay``, the time that ready tasks waited; kernel:
scheduler/sched-stats.rst), ``cpuacct.usage_percpu`` of the root cgroup (version 1, ns), and
``usage_usec`` of the root ``cpu.stat`` (version 2, all CPUs together).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from reveal_collector.devices.per_cpu import fold_by
from reveal_collector.readers.plan import TextForm
from reveal_collector.readers.source import Roots, Source
from reveal_collector.readers.textfile import Layout, TokenSource, channel, is_number, rows
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane

_CPUACCT = ("cpuacct", "cpu,cpuacct", "cpuacct,cpu")
_RUN_TIME, _RUN_DELAY = 7, 8  # tokens of a cpu line, versions 14 and later
_NS_PER_US = 1000.0
# On a large host the lines of the scheduling domains are most of the file.
_CPU_LINES = TextForm(keep=b"cpu")
_REMEDY = "use a kernel with CONFIG_SCHEDSTATS, or mount a cgroup hierarchy with CPU accounting"


def sources(roots: Roots) -> list[Source]:
    arrange = fold_by(roots.sys)
    schedstat = roots.proc / "schedstat"
    if schedstat.exists():
        learn, form = learn_schedstat, _CPU_LINES
        return [TokenSource("cpuclock", Lane.FAST, schedstat, learn, form=form, arrange=arrange)]
    path, fallback = _fallback(roots.cgroup)
    return [TokenSource("cpuclock", Lane.FAST, path, fallback, _REMEDY, arrange=arrange)]


def _fallback(cgroup: Path) -> tuple[Path, Callable[[str], Layout]]:
    for folder in _CPUACCT:
        if (path := cgroup / folder / "cpuacct.usage_percpu").exists():
            return path, learn_cpuacct
    unified = cgroup / "unified" / "cpu.stat"
    return (unified if unified.exists() else cgroup / "cpu.stat"), learn_cpu_stat


def learn_schedstat(text: str) -> Layout:
    columns: list[tuple[int, Channel | None]] = []
    for start, tokens in rows(text):
        if tokens[0].startswith("cpu") and len(tokens) > _RUN_DELAY:
            cpu = tokens[0].removeprefix("cpu")
            columns.append((start + _RUN_TIME, channel("cpu.run_time", cpu)))
            columns.append((start + _RUN_DELAY, channel("cpu.run_delay", cpu)))
    return columns


def learn_cpuacct(text: str) -> Layout:
    """Map one number per possible CPU; a CPU that never ran gets no column until its first use."""
    return [
        (cpu, channel("cpu.run_time", str(cpu)) if spent != "0" else None)
        for cpu, spent in enumerate(text.split())
        if is_number(spent)
    ]


def learn_cpu_stat(text: str) -> Layout:
    return [
        (start + 1, channel("cpu.run_time", scale=_NS_PER_US))
        for start, tokens in rows(text)
        if tokens[0] == "usage_usec" and len(tokens) == 2 and is_number(tokens[1])
    ]
