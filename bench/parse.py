"""What one tick over the files of a large host costs to read and parse, in C and in Python.

The files are made-up ones of the machines the tests know, on a file system in memory: reading
them is cheap, so that what is left is our own part.  The host goes back and forth between two
moments a tick apart, and only the files that are read are written, so that caches are warm: the
price paced at 10 Hz is about twice this.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from benchmark_report import Row, report

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from reveal_collector.kernel_interfaces.errors import LayoutChanged, Unsupported
from reveal_collector.native.scanner import NativePlan, PlanRunner, RowLayout, ScanEntry
from reveal_collector.readers.plan import scans_of
from reveal_collector.readers.source import Source
from reveal_collector.sources import cpuclock, interrupts, softirqs, stat
from support.hosts.base import add_base
from support.hosts.complete_hosts import HOSTS
from support.hosts.tree import Tree

MACHINES: dict[str, tuple[int, Callable[[Tree], object]]] = {
    "grace": (72, HOSTS["grace"]),
    "two sockets": (128, partial(add_base, cpus=128, numa_nodes=2)),
    "amd_two_socket_ib": (192, HOSTS["amd_two_socket_ib"]),
    "dgx_h100": (224, HOSTS["dgx_h100"]),
}
GROUPS = {
    "stat, softirqs": (stat, softirqs),
    "stat, schedstat, softirqs": (stat, cpuclock, softirqs),
    "interrupts": (interrupts,),
}


def opened(modules: Sequence[object], tree: Tree) -> list[Source]:
    found = []
    for module in modules:
        for source in module.sources(tree.roots):  # type: ignore[attr-defined]
            try:
                source.open()
            except Unsupported:
                continue
            found.append(source)
    return found


def in_c(sources: Sequence[Source]) -> Callable[[], int]:
    """Reads once; gives the ns it took."""
    entries, column = [], 0
    for owner, source in enumerate(sources):
        entries.append(ScanEntry(owner, scans_of(source) or (), column))
        column += len(source.channels)
    runner = PlanRunner(NativePlan(entries, RowLayout(column, 0, len(sources))))
    runner.begin()

    def read() -> int:
        runner.tick(0)
        return runner.spent_ns

    return read


def in_python(sources: Sequence[Source]) -> Callable[[], int]:
    def read() -> int:
        began = time.perf_counter_ns()
        for source in sources:
            try:
                source.read()
            except LayoutChanged:
                source.read()
        return time.perf_counter_ns() - began

    return read


class Moments:
    """Files as they are now and a tick later; each is written over the other in turn."""

    def __init__(self, tree: Tree, names: Sequence[str]) -> None:
        self._paths = [tree.root / "proc" / name for name in names]
        first = [path.read_bytes() for path in self._paths]
        tree.advance(0.1, load=3.0)
        self._states = [[path.read_bytes() for path in self._paths], first]

    def change(self) -> None:
        self._states.reverse()
        for path, text in zip(self._paths, self._states[0], strict=True):
            path.write_bytes(text)


def microseconds(read: Callable[[], int], moments: Moments, ticks: int) -> float:
    """Median over ticks; the first two learn."""
    spent = []
    for _ in range(ticks + 2):
        moments.change()
        spent.append(read())
    return statistics.median(spent[2:]) / 1000


def measure(machine: str, ticks: int) -> list[Row]:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        tree = Tree(Path(folder))
        cpus, make = MACHINES[machine]
        make(tree)
        rows = list[Row]()
        for files, modules in GROUPS.items():
            moments, sources = Moments(tree, files.split(", ")), opened(modules, tree)
            c = microseconds(in_c(sources), moments, ticks)
            python = microseconds(in_python(sources), moments, ticks)
            rows.append({
                "machine": machine, "CPUs": cpus, "files": files,
                "C, us": c, "Python, us": python,
            })  # fmt: skip
        return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ticks", type=int, default=200)
    given = parser.parse_args()
    report("parse", [row for machine in MACHINES for row in measure(machine, given.ticks)])


if __name__ == "__main__":
    main()
