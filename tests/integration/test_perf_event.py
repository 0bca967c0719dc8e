"""Perf events on this machine's kernel: real groups, scaled or not, of CPUs and of cgroups."""

from __future__ import annotations

import errno
import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from reveal_collector.devices.cpu_topology import online
from reveal_collector.kernel_interfaces.errors import LayoutChanged
from reveal_collector.kernel_interfaces.perf_event import CgroupPerfGroup, PerfEvent, PerfGroup
from reveal_collector.readers.perf_groups import CountingPlan, PerfGroupSource, fitted
from reveal_collector.readers.source import Roots
from reveal_collector.readers.textfile import channel
from reveal_collector.sources import msr
from reveal_collector.sources.pmu.device import pmu_devices
from reveal_contract.metric import Lane

CPU_CLOCK, TASK_CLOCK, SWITCHES = PerfEvent(1, 0), PerfEvent(1, 1), PerfEvent(1, 3)
UNKNOWN = PerfEvent(1, 4000)


@pytest.fixture
def cpu() -> Iterator[int]:
    """A CPU on which this test runs, and only there."""
    allowed = os.sched_getaffinity(0)
    chosen = min(allowed)
    os.sched_setaffinity(0, {chosen})
    yield chosen
    os.sched_setaffinity(0, allowed)


def group(cpu: int, events: list[PerfEvent]) -> PerfGroup:
    try:
        return PerfGroup(cpu, events)
    except OSError as error:
        pytest.skip(f"perf_event_open: {error.strerror}")


def busy(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_work_on_a_cpu_is_counted(cpu: int) -> None:
    counted = group(cpu, [TASK_CLOCK, SWITCHES])
    try:
        before = counted.read()
        busy(0.05)
        after = counted.read()
    finally:
        counted.close()
    assert before is not None
    assert after is not None
    assert after[0] - before[0] >= 50_000_000
    assert counted.last_increment is not None
    elapsed, steps = counted.last_increment
    assert elapsed >= 50_000_000
    assert steps == (after[0] - before[0], after[1] - before[1])


def test_events_unknown_to_the_kernel_are_omitted(cpu: int) -> None:
    counted = group(cpu, [SWITCHES, UNKNOWN, TASK_CLOCK])
    try:
        assert counted.events == [SWITCHES, TASK_CLOCK]
        assert len(counted.read() or ()) == 2
    finally:
        counted.close()
    with pytest.raises(OSError, match="knows none of the events") as raised:
        PerfGroup(cpu, [UNKNOWN])
    assert raised.value.errno == errno.ENOENT


def test_the_reading_has_the_documented_layout(cpu: int) -> None:
    """Number of events, time enabled, time running, counts: what a C reader relies on."""
    counted = group(cpu, [TASK_CLOCK, SWITCHES])
    try:
        raw = memoryview(os.read(counted.fd, 4096)).cast("Q").tolist()
        reading = counted.raw()
    finally:
        counted.close()
    assert len(raw) == 5
    assert raw[0] == 2
    assert reading is not None
    assert raw[1] <= reading.enabled
    assert raw[2] <= reading.running == reading.enabled
    assert raw[3] <= reading.counts[0]


def test_the_tsc_has_the_same_rate_on_all_cpus() -> None:
    device = pmu_devices(Path("/sys")).get("msr")
    named = device and device.named("tsc")
    if not named:
        pytest.skip("there is no msr PMU")
    cpus = online(Path("/sys"))

    def plan(_: Roots) -> CountingPlan:
        columns = {channel("cpu.tsc", str(cpu)): [(cpu, named.event)] for cpu in cpus} | {
            channel("cpu.tsc", "", 1 / len(cpus)): [(cpu, named.event) for cpu in cpus]
        }
        return CountingPlan([(cpu, [named.event]) for cpu in cpus], columns)

    source = PerfGroupSource("tsc", Lane.SLOW, Roots(), plan)
    source.open()
    try:
        opened = time.monotonic_ns()
        before, started = source.read(), time.monotonic_ns()
        busy(0.1)
        stopped = time.monotonic_ns()
        after, ended = source.read(), time.monotonic_ns()
    finally:
        source.close()
    steps = [new - old for old, new in zip(before, after, strict=True) if None not in (old, new)]
    assert len(steps) == len(cpus) + 1
    # each CPU was asked at some time within the two reads, in which others may be held up
    least, most = (max(steps[:-1]) / (ended - opened), min(steps[:-1]) / (stopped - started))
    assert 0.5 < least <= most < 6  # GHz
    assert steps[-1] == sum(steps[:-1])


def test_cpu_hotplug_is_followed(tmp_path: Path) -> None:
    first = min(os.sched_getaffinity(0))
    group(first, [SWITCHES]).close()

    def plan(roots: Roots) -> CountingPlan:
        cpus = online(roots.sys)
        columns = {
            channel("cpu.perf.context_switches", str(cpu)): [(cpu, SWITCHES)] for cpu in cpus
        }
        return CountingPlan([(cpu, [SWITCHES]) for cpu in cpus], columns)

    path = tmp_path / "devices/system/cpu/online"
    path.parent.mkdir(parents=True)
    path.write_text(f"{first}\n")
    source = PerfGroupSource("switches", Lane.SLOW, Roots(sys=tmp_path), plan)
    source.open()
    try:
        assert len(source.read()) == 1
        path.write_text("0-1\n" if os.cpu_count() != 1 else f"{first},{first}\n")
        with pytest.raises(LayoutChanged):
            for _ in range(5):  # whether a CPU came is asked every so many seconds
                source.read()
        assert len(source.channels) == len(online(tmp_path))
    finally:
        source.close()
    assert source.groups == []


def test_groups_of_many_cpus_are_read_in_rotation(monkeypatch: pytest.MonkeyPatch) -> None:
    cpus = online(Path("/sys"))
    if len(cpus) < 2:
        pytest.skip("one CPU only")
    group(cpus[0], [SWITCHES]).close()
    monkeypatch.setattr("reveal_collector.readers.perf_groups.GROUPS_PER_READ", -(-len(cpus) // 2))

    def plan(_: Roots) -> CountingPlan:
        return CountingPlan(
            [(cpu, [CPU_CLOCK]) for cpu in cpus],
            {channel("cpu.tsc", str(cpu)): [(cpu, CPU_CLOCK)] for cpu in cpus},
        )

    source = PerfGroupSource("clock", Lane.SLOW, Roots(), plan)
    source.open()
    try:
        rows = [list(source.read()) for _ in range(4)]
    finally:
        source.close()
    for before, after in itertools.pairwise(rows):
        moved = [old != new for old, new in zip(before, after, strict=True)]
        assert 0 < sum(moved) <= -(-len(cpus) // 2)
    assert all(old != new for old, new in zip(rows[1], rows[3], strict=True))


def hierarchy() -> Path:
    """A cgroup tree perf takes directories of: version 2, or version 1's perf_event."""
    for line in Path("/proc/mounts").read_text().splitlines():
        _, mount_point, kind, options, *_ = line.split()
        if kind == "cgroup2" or (kind == "cgroup" and "perf_event" in options.split(",")):
            return Path(mount_point)
    pytest.skip("no cgroup tree perf could use")


@pytest.fixture
def cgroup() -> Iterator[Path]:
    if os.geteuid() != 0:
        pytest.skip("cgroups are made by root")
    path = hierarchy() / f"reveal-test-perf-{os.getpid()}"
    try:
        path.mkdir()
    except OSError as error:
        pytest.skip(f"no cgroup can be made: {error}")
    yield path
    for _ in range(100):  # until the kernel has let go of the last task
        try:
            path.rmdir()
        except OSError:
            time.sleep(0.01)
        else:
            return
    pytest.fail(f"{path} is still in use")


@pytest.mark.root
def test_work_in_a_cgroup_is_counted(cgroup: Path, cpu: int) -> None:
    """The cgroup's time enabled begins at the uptime: only steps say anything."""
    directory = os.open(cgroup, os.O_RDONLY)
    try:
        counted = CgroupPerfGroup(directory, cpu, [TASK_CLOCK, SWITCHES])
    except OSError as error:
        pytest.skip(f"perf_event_open: {error.strerror}")
    finally:
        os.close(directory)
    spin = "import time\nend = time.thread_time() + 0.2\nwhile time.thread_time() < end: pass"
    try:
        busy(0.02)
        assert counted.read() == (0, 0)  # nobody in it
        inside = subprocess.Popen(
            [sys.executable, "-c", f"import os, signal; os.kill(os.getpid(), 19)\n{spin}"]
        )
        os.waitid(os.P_PID, inside.pid, os.WSTOPPED | os.WEXITED)
        (cgroup / "cgroup.procs").write_text(str(inside.pid))
        inside.send_signal(signal.SIGCONT)
        assert inside.wait(20) == 0
        values = counted.read()
        quiet = counted.read()
    finally:
        counted.close()
    assert values is not None
    assert 150_000_000 < values[0] < 1_000_000_000
    assert quiet == values


def test_busy_share_and_clock_on_a_kernel_that_names_them(tmp_path: Path) -> None:
    """The PMU is this kernel's own; the tree only calls its TSC by three names."""
    device = pmu_devices(Path("/sys")).get("msr")
    if device is None or device.named("tsc") is None:
        pytest.skip("there is no msr PMU")
    folder = tmp_path / "bus/event_source/devices/msr"
    for name in ("type", "format/event", "events/tsc"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text((device.path / name).read_text())
    for name in ("aperf", "mperf"):
        (folder / "events" / name).write_text((device.path / "events/tsc").read_text())
    cpus = tmp_path / "devices/system/cpu/online"
    cpus.parent.mkdir(parents=True)
    cpus.write_text(Path("/sys/devices/system/cpu/online").read_text())
    source = next(each for each in msr.sources(Roots(sys=tmp_path)) if each.name == "msr")
    source.open()
    try:
        first = dict(zip(source.channels, source.read(), strict=True))
        busy(0.02)
        second = dict(zip(source.channels, source.read(), strict=True))
        cpus.write_text("0\n")
        with pytest.raises(LayoutChanged):
            for _ in range(5):
                source.read()
        assert len(source.read()) == len(source.channels)
    finally:
        source.close()
    values = {column.label: (first[column], second[column]) for column in second}
    assert 990_000 < (values["cpu.busy_share.highest"][1] or 0) < 1_010_000
    rate = values["cpu.busy_frequency.lowest"][1]
    assert rate is not None
    assert 5e8 < rate < 6e9
    before, after = values["cpu.tsc"]
    assert before is not None
    assert after is not None
    assert after > before


def test_an_unavailable_event_does_not_affect_other_events(cpu: int) -> None:
    device = pmu_devices(Path("/sys")).get("msr")
    if device is None:
        pytest.skip("there is no msr PMU")
    group(cpu, [SWITCHES]).close()
    refused = PerfEvent(device.type, 99)  # EINVAL, alone and in a group
    groups = fitted(cpu, [refused, TASK_CLOCK, UNKNOWN, refused, SWITCHES])
    try:
        assert [each.events for each in groups] == [[TASK_CLOCK, SWITCHES]]
    finally:
        for each in groups:
            each.close()
    assert fitted(cpu, [UNKNOWN, refused]) == []
