"""The ledger beside many pods of many threads, and while processes are started without a pause."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack
from pathlib import Path

from benchmark_report import Row
from ledgerbench import live
from reveal_collector.ledger.programs import State
from reveal_collector.ledger.source import Ledger
from reveal_contract import ledger

_WAKES_MS = 1000  # between two wake-ups of a thread
_SETTLES_S = 15
_FIRST_SLOT = 1000


def pods(count: int, threads: int, seconds: int) -> Row:
    """Return what the ledger costs beside so many cgroups of so many threads."""
    source, tree = live.ledger_source()
    with live.built("crowd") as crowd, ExitStack() as stack:
        for number in range(count):
            subject = live.Subject(_FIRST_SLOT + number, tree)
            stack.callback(subject.remove)
            subject.start_program(crowd, "sleep", str(threads), str(_WAKES_MS))
        began = time.perf_counter()
        source.open()
        stack.callback(source.close)
        opened_s = time.perf_counter() - began
        for _ in range(_SETTLES_S):
            time.sleep(1.0)
            live.read(source)
        used, cost, start = live.cpu_time(), _cost_ns(source), time.monotonic()
        for _ in range(seconds):
            time.sleep(1.0)
            live.read(source)
        wall = time.monotonic() - start
        return {
            "pods": count,
            "threads": count * threads,
            "open_s": round(opened_s, 3),
            "read_percent_of_a_core": round(100 * (live.cpu_time() - used) / wall, 3),
            "programs_percent_of_a_core": round((_cost_ns(source) - cost) / wall / 1e7, 3),
            "channels": len(source.channels),
            "map_bytes": live.map_bytes(),
            "folded": _own(source, ledger.FOLDED),
        }


def processes(count: int) -> Row:
    """Return whether the counters are exact, and what is left of so many short processes.

    They keep to one CPU.  Where a process wakes up another CPU, the kernel begins its run time when
    it is woken, not when it runs: it saves an update of its clock (``rq_clock_skip_update``).
    """
    programs, tree = live.load()
    subject = live.Subject(3, tree)
    try:
        with live.built("crowd") as crowd:
            live.attach(programs, (subject,))
            before, used, memory = programs.read(live.USED), subject.used_ns(), _kernel_bytes()
            began = time.monotonic()
            subject.start_program("taskset", "-c", "0", crowd, "spawn", str(count))
            code = subject.processes[0].wait()
            wall = time.monotonic() - began
            time.sleep(1.0)  # the last ones are reaped
            now = programs.read(live.USED)
            states = (State.RUN, State.RECLAIM, State.IRQ)
            run = sum(int(now.spent[3][each] - before.spent[3][each]) for each in states)
            counted = subject.used_ns() - used
            return {
                "processes": count,
                "exit": code,
                "a_second": round(count / wall),
                "run_s": round(run / 1e9, 4),
                "cgroup_s": round(counted / 1e9, 4),
                "difference_percent": round(100 * (run / counted - 1), 3),
                "kernel_memory_growth_kib": round((_kernel_bytes() - memory) / 1024),
                "programs_percent_of_a_core": round((now.cost - before.cost) / wall / 1e7, 2),
                "missed": now.missed - before.missed,
            }
    finally:
        subject.remove()
        programs.close()


def _own(source: Ledger, metric: str) -> int:
    values = live.read(source)
    names = [channel.metric for channel in source.channels]
    return int(values[names.index(metric)] or 0)


def _cost_ns(source: Ledger) -> int:
    return _own(source, ledger.COST) * ledger.RESOLUTION_NS


def _kernel_bytes() -> int:
    """Return the kernel memory in slabs and per-CPU areas, where maps and storage live."""
    os.sync()
    rows = dict(
        line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines() if ":" in line
    )
    return sum(int(rows[name].split()[0]) * 1024 for name in ("SUnreclaim", "Percpu"))
