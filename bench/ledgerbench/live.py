"""The ledger's programs with real cgroups: two subjects, and what the kernel says of them."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from reveal_collector import native
from reveal_collector.devices.cpu_topology import cpu_list
from reveal_collector.kernel_interfaces.errors import LayoutChanged
from reveal_collector.ledger.names import hierarchy_of
from reveal_collector.ledger.programs import Extent, Programs
from reveal_collector.ledger.source import Ledger
from reveal_collector.readers.source import Roots
from reveal_collector.subjects.cgroup_files import hierarchies
from reveal_collector.subjects.tracker import SubjectSelection, SubjectTracker

SPIN = "while True: pass"
HALF = (
    "import time\nwhile True:\n e = time.perf_counter() + .01\n"
    " while time.perf_counter() < e: pass\n time.sleep(.01)"
)
USED = Extent(8, 8)


class Subject:
    """A cgroup with a slot, in which processes run."""

    def __init__(self, slot: int, tree: Path) -> None:
        self.slot = slot
        self.folder = tree / f"reveal-ledger-bench-{os.getpid()}-{slot}"
        self.folder.mkdir()
        self.processes: list[subprocess.Popen[bytes]] = []

    @property
    def key(self) -> int:
        return self.folder.stat().st_ino

    def start(self, code: str) -> None:
        """Run a program of Python in it."""
        self.start_program(sys.executable, "-S", "-c", code)

    def start_program(self, *command: str | Path) -> None:
        """Run a program in it."""

        def enter() -> None:
            (self.folder / "cgroup.procs").write_text(str(os.getpid()))

        self.processes.append(subprocess.Popen(command, preexec_fn=enter))  # noqa: PLW1509

    def used_ns(self) -> int:
        """Return the CPU time that the cgroup counts."""
        if (self.folder / "cpuacct.usage").exists():
            return int((self.folder / "cpuacct.usage").read_text())
        return int((self.folder / "cpu.stat").read_text().split()[1]) * 1000

    def schedstat(self) -> tuple[int, int]:
        """Return the run and wait time of its processes, each of one thread."""
        rows = [
            Path(f"/proc/{process.pid}/schedstat").read_text().split() for process in self.processes
        ]
        return sum(int(row[0]) for row in rows), sum(int(row[1]) for row in rows)

    def remove(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()
        self.folder.rmdir()


def load() -> tuple[Programs, Path]:
    """Load the programs, without attaching them; return them and the tree of cgroups."""
    roots = Roots()
    hierarchy, tree = hierarchy_of(hierarchies(roots.cgroup))
    library = native.load().library
    assert library is not None
    assert tree is not None
    cpus = 1 + max(cpu_list((roots.sys / "devices/system/cpu/possible").read_text()))
    return Programs(library, cpus, hierarchy, tree.stat().st_ino), tree


def attach(programs: Programs, subjects: Iterable[Subject]) -> None:
    """Name the subjects and begin to count."""
    for subject in subjects:
        programs.name(subject.key, subject.slot, subject.slot)
    programs.attach()


def map_bytes() -> int:
    """Return the kernel memory of the maps that this process holds."""
    total = 0
    for entry in Path("/proc/self/fdinfo").iterdir():
        try:
            lines = entry.read_text().splitlines()
        except OSError:
            continue
        fields = dict(line.split(":", 1) for line in lines if ":" in line)
        if "map_type" in fields:
            total += int(fields["memlock"])
    return total


def ledger_source() -> tuple[Ledger, Path]:
    """Return the collector's source of the ledger, not opened, and the tree of cgroups."""
    roots = Roots()
    trees = hierarchies(roots.cgroup)
    _, tree = hierarchy_of(trees)
    assert tree is not None
    tracker = SubjectTracker(trees, SubjectSelection())
    return Ledger(roots, tracker, lambda group: None), tree


def read(source: Ledger) -> list[int | None]:
    """Return the values of a source, after a change of its channels, too."""
    try:
        return list(source.read())
    except LayoutChanged:
        return list(source.read())


def cpu_time() -> float:
    """Return the CPU time (s) that this process used."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


@contextmanager
def built(name: str) -> Iterator[Path]:
    """Build a C program of this folder."""
    source = Path(__file__).parent / f"{name}.c"
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / name
        subprocess.run(["cc", "-O2", "-pthread", "-o", program, source], check=True)
        yield program
