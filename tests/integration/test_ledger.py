"""The BPF programs of the ledger on the running kernel, with real processes in real cgroups."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from reveal_collector import native
from reveal_collector.devices.cpu_topology import cpu_list
from reveal_collector.ledger.names import hierarchy_of
from reveal_collector.ledger.programs import Extent, Programs, State, Totals
from reveal_collector.readers.source import Roots
from reveal_collector.subjects.cgroup_files import hierarchies
from support.ledger_host import bpf_descriptors, is_removed, why_not
from support.polling import wait_until

ROOTS = Roots()
SECOND = 1_000_000_000
IDLE = 2  # its index in the matrix
PARTS = [state for state in State if state not in (State.ALIVE, State.DISK, State.SURPLUS)]
ON_CPU = (State.RUN, State.RECLAIM, State.IRQ)


pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(bool(why_not()), reason=why_not() or "runs here"),
]


class Subject:
    """A cgroup with a slot of its own."""

    def __init__(self, slot: int, *trees: Path) -> None:
        self.slot = slot
        self.folders = [tree / f"reveal-ledger-test-{os.getpid()}-{slot}" for tree in trees]
        for folder in self.folders:
            folder.mkdir()
        self._processes: list[subprocess.Popen[bytes]] = []

    @property
    def key(self) -> int:
        return self.folders[0].stat().st_ino

    def start(self, *command: str, cpu: int | None = None) -> subprocess.Popen[bytes]:
        def enter() -> None:
            for folder in self.folders:
                (folder / "cgroup.procs").write_text(str(os.getpid()))
            time.sleep(0.001)  # a thread counts in a new cgroup from its next switch on
            if cpu is not None:
                os.sched_setaffinity(0, {cpu})

        process = subprocess.Popen(command, preexec_fn=enter)  # noqa: PLW1509 - one thread
        self._processes.append(process)
        return process

    def spin(self, seconds: float, cpu: int | None = None) -> subprocess.Popen[bytes]:
        """Start a process that ends after so much CPU time."""
        code = f"import time\nwhile time.process_time() < {seconds}: pass"
        return self.start(sys.executable, "-S", "-c", code, cpu=cpu)

    def remove(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()
        for folder in self.folders:
            wait_until(lambda folder=folder: is_removed(folder))


class Live:
    """The attached programs with two named subjects."""

    def __init__(self) -> None:
        trees = hierarchies(ROOTS.cgroup)
        hierarchy, tree = hierarchy_of(trees)
        library = native.load().library
        assert library is not None and tree is not None
        also = [trees["cpu"]] if "cpu" in trees and trees["cpu"] != tree else []
        cpus = 1 + max(cpu_list((ROOTS.sys / "devices/system/cpu/possible").read_text()))
        self.programs = Programs(library, cpus, hierarchy, tree.stat().st_ino)
        self.a, self.b = Subject(3, tree, *also), Subject(4, tree, *also)
        for subject in (self.a, self.b):
            self.programs.name(subject.key, subject.slot, subject.slot)
        self.programs.attach()

    def read(self) -> Totals:
        return self.programs.read(Extent(8, 8))

    def close(self) -> None:
        self.a.remove()
        self.b.remove()
        self.programs.close()


@pytest.fixture
def live() -> Iterator[Live]:
    started = Live()
    yield started
    started.close()


def spent(totals: Totals, subject: Subject, state: State) -> float:
    return float(totals.spent[subject.slot][state]) / SECOND


def check_sum(totals: Totals, subject: Subject) -> None:
    """The parts add up to the lives of the threads."""
    parts = sum(spent(totals, subject, state) for state in PARTS)
    assert parts == pytest.approx(spent(totals, subject, State.ALIVE), rel=0.01)


def test_two_subjects_share_a_cpu(live: Live) -> None:
    """Each one's waits are those while the other ran, or its own second thread."""
    workers = [live.a.spin(0.3, cpu=0), live.a.spin(0.3, cpu=0), live.b.spin(0.3, cpu=0)]
    for worker in workers:
        assert worker.wait(60) == 0
    now = live.read()
    assert spent(now, live.a, State.RUN) == pytest.approx(0.6, abs=0.2)
    assert spent(now, live.b, State.RUN) == pytest.approx(0.3, abs=0.1)
    for subject in (live.a, live.b):
        check_sum(now, subject)
        row = sum(now.waited[subject.slot]) / SECOND
        assert row == pytest.approx(spent(now, subject, State.WAIT), abs=0.02)
    by_a = now.waited[live.b.slot][live.a.slot] / SECOND
    by_b = now.waited[live.a.slot][live.b.slot] / SECOND
    by_itself = now.waited[live.a.slot][live.a.slot] / SECOND
    assert by_a > 0.1
    assert by_b > 0.1
    assert by_itself > 0.1
    assert now.waited[live.b.slot][live.b.slot] / SECOND < 0.05


def test_threads_above_the_cpus_they_may_use_are_a_surplus(live: Live) -> None:
    """Two on one CPU are one too many, whoever else runs there; alone a thread never is."""
    for subject, cpu in ((live.a, 0), (live.a, 0), (live.b, None)):
        subject.spin(60, cpu)
    known = {live.a.slot: 1, live.b.slot: len(os.sched_getaffinity(0))}  # at the next switch
    wait_until(lambda: {slot: live.read().cpus[slot] for slot in known} == known)
    first = live.read()
    wait_until(lambda: live.read().now - first.now > SECOND / 2)
    now = live.read()
    runnable, surplus = (
        sum(spent(now, live.a, state) - spent(first, live.a, state) for state in states)
        for states in ((State.RUN, State.IRQ, State.WAIT), (State.SURPLUS,))
    )
    assert runnable == pytest.approx(2 * (now.now - first.now) / SECOND, rel=0.05)
    assert surplus == pytest.approx(runnable / 2, rel=0.05)
    assert spent(now, live.b, State.SURPLUS) == spent(first, live.b, State.SURPLUS)


@pytest.mark.parametrize("cpu", [0, max(os.sched_getaffinity(0))])
def test_run_time_is_that_of_the_kernel(live: Live, cpu: int) -> None:
    """Some kernels do not report that a CPU other than the first one leaves idle.

    The kernel leaves out what a hypervisor takes from the CPU while the process runs.
    """
    stolen = -_stolen_time(cpu)
    assert live.a.spin(0.4, cpu=cpu).wait(60) == 0
    now = live.read()
    stolen += _stolen_time(cpu)
    states = {state: spent(now, live.a, state) for state in State}
    used, counted = _cpu_time(live.a.folders[0]), sum(states[state] for state in ON_CPU)
    assert used - 0.02 <= counted <= used + stolen + 0.02, f"{states}, {stolen} s are stolen"
    assert now.waited[live.a.slot][IDLE] / SECOND < 0.05
    check_sum(now, live.a)


def test_what_interrupts_the_programs_is_not_their_cost(live: Live) -> None:
    """A sampled run stands for 64, so one stolen moment would exceed the budget of a minute."""
    sampled, longest_ns = 64, 50_040
    assert live.a.start("/bin/sh", "-c", "for i in $(seq 300); do /bin/true; done").wait(60) == 0
    now = live.read()
    runs = now.switches + now.wakeups + 2 * sampled * len(os.sched_getaffinity(0))
    assert 0 < now.cost <= runs * longest_ns


@pytest.mark.parametrize("cpu", [0, max(os.sched_getaffinity(0))])
def test_a_thread_that_is_moved_while_it_runs_goes_on_in_the_new_cgroup(
    live: Live, cpu: int
) -> None:
    """It may run for long before it is switched out, or sleep for ever from then on."""
    code = (
        "import time\nwhile time.process_time() < .3: pass\n"
        f"for folder in {[str(folder) for folder in live.b.folders]}:\n"
        "    open(folder + '/cgroup.procs', 'w').write('0')\n"
        "while time.process_time() < .6: pass\ntime.sleep(100)"
    )
    live.a.start(sys.executable, "-S", "-c", code, cpu=cpu)
    wait_until(lambda: spent(live.read(), live.b, State.SLEEP) > 0.02)
    now = live.read()
    assert now.threads[live.a.slot] == 0
    assert now.threads[live.b.slot] == 1
    for subject in (live.a, live.b):
        states = {state.name: spent(now, subject, state) for state in State}
        assert states["RUN"] == pytest.approx(0.3, abs=0.05), f"{states}"
        check_sum(now, subject)


def test_a_thread_that_is_moved_in_its_sleep_sleeps_on_in_the_new_cgroup(live: Live) -> None:
    process = live.a.start("/bin/sleep", "100")
    wait_until(lambda: _is_asleep(live.a))
    slept = spent(live.read(), live.a, State.SLEEP)
    for folder in live.b.folders:
        (folder / "cgroup.procs").write_text(str(process.pid))
    assert list(live.read().threads[live.a.slot : live.b.slot + 1]) == [0, 1]
    wait_until(lambda: spent(live.read(), live.b, State.SLEEP) > 0.02)
    assert spent(live.read(), live.a, State.SLEEP) == pytest.approx(slept, abs=0.05)
    check_sum(live.read(), live.b)


def _stolen_time(cpu: int) -> float:
    rows = (line.split() for line in Path("/proc/stat").read_text().splitlines())
    return next(int(row[8]) for row in rows if row[0] == f"cpu{cpu}") / os.sysconf("SC_CLK_TCK")


def _cpu_time(folder: Path) -> float:
    if (folder / "cpuacct.usage").exists():
        return int((folder / "cpuacct.usage").read_text()) / SECOND
    return int((folder / "cpu.stat").read_text().split()[1]) / 1e6


def test_short_lived_processes_leave_nothing_behind(live: Live) -> None:
    """Some switches are not reported: no thread may stay in a state for ever."""
    loop = "i=0; while [ $i -lt 1500 ]; do /bin/true & i=$((i+1)); [ $((i%20)) = 0 ] && wait; done"
    assert live.a.start("/bin/sh", "-c", f"{loop}; wait").wait(120) == 0

    def is_empty() -> bool:
        first, second = live.read(), live.read()
        changed = [second.spent[3][state] - first.spent[3][state] for state in State]
        return second.threads[3] == 0 and not any(changed)

    wait_until(is_empty)
    check_sum(live.read(), live.a)
    assert live.read().waits[3][0] >= 1500


def test_a_stopped_process_is_stopped_while_it_lasts(live: Live) -> None:
    process = live.a.start("/bin/sleep", "100")
    process.send_signal(signal.SIGSTOP)
    wait_until(lambda: spent(live.read(), live.a, State.STOPPED) > 0.05)
    process.send_signal(signal.SIGCONT)
    before = spent(live.read(), live.a, State.SLEEP)
    wait_until(lambda: spent(live.read(), live.a, State.SLEEP) > before + 0.05)
    check_sum(live.read(), live.a)


def test_a_sleeper_moves_to_a_subject_that_is_named_later(live: Live) -> None:
    live.programs.forget(live.a.key)
    live.programs.raise_generation()
    live.a.start("/bin/sleep", "100")
    wait_until(lambda: _is_asleep(live.a))
    assert live.read().threads[live.a.slot] == 0
    live.programs.name(live.a.key, live.a.slot, live.a.slot)
    live.programs.raise_generation()
    live.programs.walk_threads()
    assert live.read().threads[live.a.slot] == 1
    wait_until(lambda: spent(live.read(), live.a, State.SLEEP) > 0.02)
    check_sum(live.read(), live.a)


def _is_asleep(subject: Subject) -> bool:
    pids = (subject.folders[0] / "cgroup.procs").read_text().split()
    stats = [Path(f"/proc/{pid}/stat").read_text() for pid in pids]
    return bool(stats) and all("(sleep) S" in stat for stat in stats)


def test_a_child_cgroup_belongs_to_its_subject(live: Live) -> None:
    """Also one that nobody has seen: the programs look at the cgroups above."""
    inner = live.a.folders[0] / "inner"
    inner.mkdir()
    process = live.a.start("/bin/sleep", "100")
    (inner / "cgroup.procs").write_text(str(process.pid))
    spinner = live.a.start(
        "/bin/sh",
        "-c",
        f"echo $$ > {inner}/cgroup.procs; i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done",
    )
    assert spinner.wait(60) == 0
    assert spent(live.read(), live.a, State.RUN) > 0.01
    process.kill()
    process.wait()
    wait_until(lambda: is_removed(inner))


@pytest.mark.parametrize("cpu", [0, max(os.sched_getaffinity(0))])
def test_a_quota_is_not_a_neighbor(live: Live, cpu: int) -> None:
    folder = live.a.folders[-1]
    if (folder / "cpu.cfs_quota_us").exists():
        (folder / "cpu.cfs_quota_us").write_text("20000")
    elif (folder / "cpu.max").exists():
        (folder / "cpu.max").write_text("20000 100000")
    else:
        pytest.skip("cgroups have no CPU quota here")
    assert live.a.spin(0.15, cpu=cpu).wait(60) == 0
    now = live.read()
    assert spent(now, live.a, State.THROTTLED) > 0.2
    counted = spent(now, live.a, State.RUN) + spent(now, live.a, State.IRQ)
    assert counted == pytest.approx(_cpu_time(live.a.folders[0]), abs=0.02)
    check_sum(now, live.a)


VFORK = """
#include <unistd.h>
int main(void) { if (vfork() == 0) { usleep(300000); _exit(0); } return 0; }
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_a_parent_of_vfork_waits_killably(live: Live, tmp_path: Path) -> None:
    (tmp_path / "v.c").write_text(VFORK)
    subprocess.run(["cc", "-w", "-o", tmp_path / "v", tmp_path / "v.c"], check=True)
    assert live.a.start(str(tmp_path / "v")).wait(60) == 0
    now = live.read()
    assert spent(now, live.a, State.KILLABLE) > 0.25
    assert spent(now, live.a, State.LOCKED) + spent(now, live.a, State.IO) < 0.1


def test_soft_interrupts_of_loopback_are_those_of_the_sender(live: Live) -> None:
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.bind(("127.0.0.1", 0))
    code = (
        "import socket, time\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        f"while time.process_time() < .3: s.sendto(b'x' * 900, {receiver.getsockname()})"
    )
    bystander = live.b.spin(0.3)
    assert live.a.start(sys.executable, "-S", "-c", code).wait(60) == 0
    assert bystander.wait(60) == 0
    receiver.close()
    now = live.read()
    assert spent(now, live.a, State.IRQ) > 0.02
    assert spent(now, live.b, State.IRQ) < spent(now, live.a, State.IRQ) / 2


def test_reads_of_a_disk_are_requests_of_the_reader(live: Live, tmp_path: Path) -> None:
    file = tmp_path / "file"
    with file.open("wb") as output:
        for _ in range(64):
            output.write(os.urandom(1 << 20))
        output.flush()
        os.fsync(output.fileno())
        os.posix_fadvise(output.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    assert (
        live.a.start("/bin/dd", f"if={file}", "of=/dev/null", "bs=1M", "status=none").wait(60) == 0
    )
    now = live.read()
    if spent(now, live.a, State.IO) < 0.001:
        pytest.skip("the file is on no disk that requests wait for")
    assert spent(now, live.a, State.DISK) > 0
    check_sum(now, live.a)


@pytest.fixture
def second_disk(tmp_path: Path) -> Iterator[str]:
    """Return a block device on a file, which is a disk of its own to the kernel."""
    (file := tmp_path / "disk").write_bytes(bytes(8 << 20))
    started = subprocess.run(
        ["losetup", "--find", "--show", file], capture_output=True, text=True, check=False
    )
    if started.returncode:
        pytest.skip(f"no loop device: {started.stderr.strip()}")
    yield started.stdout.strip()
    subprocess.run(["losetup", "--detach", started.stdout.strip()], check=True)


@pytest.mark.skipif(shutil.which("losetup") is None, reason="needs losetup")
def test_requests_count_for_their_disk(live: Live, tmp_path: Path, second_disk: str) -> None:
    """Subject A writes to the first disk and B reads from another one; neither uses both."""
    write = ("/bin/dd", "if=/dev/zero", f"of={tmp_path / 'file'}", "bs=256k", "count=40")
    assert live.a.start(*write, "oflag=direct", "status=none").wait(60) == 0
    read = ("/bin/dd", f"if={second_disk}", "of=/dev/null", "bs=64k", "iflag=direct")
    assert live.b.start(*read, "status=none").wait(60) == 0
    now = live.read()
    of_each = (now.disks[subject.slot] for subject in (live.a, live.b))
    used = [{disk for disk, spent_ns in enumerate(times) if spent_ns} for times in of_each]
    if not used[0]:
        pytest.skip("the file is on no disk that requests wait for")
    assert not used[0] & used[1]
    for subject, size in ((live.a, 40 << 18), (live.b, 8 << 20)):
        count, sectors = (sum(each[subject.slot]) for each in (now.completed, now.sectors))
        assert 512 * count <= size <= 512 * sectors
        under_way = sum(now.disks[subject.slot]) / SECOND
        assert under_way == pytest.approx(spent(now, subject, State.DISK), rel=1e-9)


def test_closing_detaches_everything() -> None:
    before = bpf_descriptors()
    started = Live()
    assert bpf_descriptors() > before + 20
    started.close()
    assert bpf_descriptors() == before
    with pytest.raises(OSError, match="closed"):
        started.programs.take_unnamed()
