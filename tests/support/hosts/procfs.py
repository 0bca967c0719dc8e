"""``/proc`` of a made-up host: CPU time, interrupts, memory, disks; all of it moves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from support.hosts import recorded_names
from support.hosts.machine import GIB, Disk, Machine
from support.hosts.tree import Moment, Moving, Tree

UPTIME = 86_400  # seconds up when the tree is made
UNUSED_DISK = "0 " * 16 + "0"
BOOT_ID = "6a1c1e0e-2d0f-4b52-9a51-0c8a5f6e7d11"
_SOFTIRQS = {
    "HI": 0, "TIMER": 90, "NET_TX": 3, "NET_RX": 400, "BLOCK": 120, "IRQ_POLL": 0, "TASKLET": 2,
    "SCHED": 150, "HRTIMER": 1, "RCU": 80,
}  # fmt: skip
_X86_ROWS = {
    "NMI": (1, "Non-maskable interrupts"), "LOC": (250, "Local timer interrupts"),
    "SPU": (0, "Spurious interrupts"), "PMI": (1, "Performance monitoring interrupts"),
    "IWI": (4, "IRQ work interrupts"), "RTR": (0, "APIC ICR read retries"),
    "RES": (60, "Rescheduling interrupts"), "CAL": (40, "Function call interrupts"),
    "TLB": (25, "TLB shootdowns"), "TRM": (0, "Thermal event interrupts"),
    "THR": (0, "Threshold APIC interrupts"), "MCE": (0, "Machine check exceptions"),
    "MCP": (1, "Machine check polls"),
}  # fmt: skip
_ARM_ROWS = {
    "IPI0": (60, "Rescheduling interrupts"), "IPI1": (40, "Function call interrupts"),
    "IPI2": (0, "CPU stop interrupts"), "IPI3": (0, "CPU stop (for crash dump) interrupts"),
    "IPI4": (5, "Timer broadcast interrupts"), "IPI5": (4, "IRQ work interrupts"),
    "IPI6": (0, "CPU wake-up interrupts"),
}  # fmt: skip


@dataclass(frozen=True)
class Vector:
    """One line of ``/proc/interrupts``: where it is routed and how often it fires."""

    number: int
    chip: str
    name: str
    cpu: int = 0
    rate: int = 0


@dataclass
class Vectors:
    """The interrupts of a host, numbered as they are requested."""

    first: int = 24
    lines: list[Vector] = field(default_factory=list)

    def add(self, chip: str, name: str, cpu: int = 0, rate: int = 0) -> Vector:
        vector = Vector(self.first + len(self.lines), chip, name, cpu, rate)
        self.lines.append(vector)
        return vector

    def of(self, pci: str) -> list[Vector]:
        """Those of one PCI function, in the order of their numbers."""
        return [line for line in self.lines if f"-{pci} " in line.chip]


def add_proc(tree: Tree, machine: Machine, vectors: Vectors) -> None:
    """CPU, interrupts, scheduler, load and pressure; then memory and disks."""
    add_cpu_time(tree, machine, vectors)
    add_interrupts(tree, machine, vectors)
    add_memory(tree, machine)
    tree.write("proc/diskstats", lambda now: diskstats(machine, now))
    tree.write("proc/swaps", "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n")
    tree.write("proc/uptime", lambda now: f"{UPTIME + now.time / 1000:.2f} {UPTIME / 2:.2f}\n")
    tree.write("proc/version", f"Linux version {release(machine)} (builder@host) #1 SMP\n")
    tree.write("proc/sys/kernel/osrelease", f"{release(machine)}\n")
    tree.write("proc/sys/kernel/random/boot_id", f"{BOOT_ID}\n")
    tree.write("proc/cmdline", "BOOT_IMAGE=/boot/vmlinuz root=/dev/sda1 ro quiet\n")


def release(machine: Machine) -> str:
    return f"{machine.kernel[0]}.{machine.kernel[1]}.0-31-generic"


def add_cpu_time(tree: Tree, machine: Machine, vectors: Vectors) -> None:
    tree.write("proc/stat", lambda now: stat(machine, vectors, now))
    tree.write("proc/softirqs", lambda now: softirqs(machine, now))
    tree.write("proc/loadavg", lambda now: f"3.21 2.84 2.11 {now.level(5, 3)}/812 40321\n")
    if machine.schedstat:
        tree.write("proc/schedstat", lambda now: schedstat(machine, now))
    if machine.psi:
        for name, rate in (("cpu", 40_000), ("memory", 500), ("io", 9_000)):
            tree.write(f"proc/pressure/{name}", pressure(rate))
        if machine.kernel >= (6, 1):
            tree.write("proc/pressure/irq", pressure(1_500, ("full",)))


def busy(cpu: int) -> int:
    """How busy a CPU is at load 1, in percent: from idle to nearly full."""
    return (cpu * 37 + 11) % 97


def stat(machine: Machine, vectors: Vectors, now: Moment) -> str:
    """proc_stat(5); a host of this house ticks at 100 Hz."""
    rows = [_cpu_row(cpu, now, machine.virtual) for cpu in range(machine.cpus)]
    total = " ".join(str(sum(column)) for column in zip(*rows, strict=True))
    lines = [f"cpu  {total}"]
    lines += [f"cpu{cpu} {' '.join(map(str, row))}" for cpu, row in enumerate(rows)]
    counts = {line.number: now.count(line.rate, line.rate * UPTIME) for line in vectors.lines}
    last = max(counts, default=0) + 64
    served = " ".join(str(counts.get(number, 0)) for number in range(last))
    deferred = [now.count(rate * machine.cpus, UPTIME * rate) for rate in _SOFTIRQS.values()]
    return "\n".join([
        *lines,
        f"intr {sum(counts.values()) + now.count(400 * machine.cpus)} {served}",
        f"ctxt {now.count(9_000 * machine.cpus, 10**9)}",
        "btime 1760000000",
        f"processes {now.count(12, 2_000_000)}",
        f"procs_running {now.level(3, 2)}",
        f"procs_blocked {now.level(1, 1)}",
        f"softirq {sum(deferred)} {' '.join(map(str, deferred))}",
        "",
    ])  # fmt: skip


def _cpu_row(cpu: int, now: Moment, virtual: bool) -> tuple[int, ...]:
    used = busy(cpu)
    rates = (
        used * 0.7, 0, used * 0.2, 100 - used, (100 - used) * 0.02, used * 0.02, used * 0.08,
        used * 0.01 if virtual else 0, 0, 0,
    )  # fmt: skip
    return tuple(now.count(rate, int(rate * UPTIME)) for rate in rates)


def softirqs(machine: Machine, now: Moment) -> str:
    """``/proc/softirqs`` has a column for every possible CPU."""
    lines = [" " * 20 + "".join(f"CPU{cpu:<8}" for cpu in range(machine.cpus))]
    for name, rate in _SOFTIRQS.items():
        counts = (now.count(rate * (cpu % 5 + 1), rate * UPTIME) for cpu in range(machine.cpus))
        lines.append(f"{name:>12}:" + "".join(f" {count:>10}" for count in counts))
    return "\n".join([*lines, ""])


def schedstat(machine: Machine, now: Moment) -> str:
    """scheduler/sched-stats.rst: version 15 until 6.14, one domain a topology level."""
    lines = ["version 15", f"timestamp {4_294_000_000 + now.time // 4}"]
    width = max(1, machine.cpus // 4)
    domain = "0" * (width - 1) + "3"
    for cpu in range(machine.cpus):
        run = now.count(busy(cpu) * 10**7, busy(cpu) * 10**7 * UPTIME)
        wait = now.count(busy(cpu) * 10**5, busy(cpu) * 10**5 * UPTIME)
        lines.append(f"cpu{cpu} 0 0 0 0 0 0 {run} {wait} {now.count(900, 77_000)}")
        lines.append(f"domain0 {domain}{' 0' * 36}")
    return "\n".join([*lines, ""])


def pressure(rate: int, kinds: tuple[str, ...] = ("some", "full")) -> Moving:
    """accounting/psi.rst: ``total`` in microseconds, ``full`` half of ``some``."""

    def content(now: Moment) -> str:
        lines = []
        for part, kind in enumerate(kinds, 1):
            total = now.count(rate // part, rate // part * 3600)
            lines.append(f"{kind} avg10=0.31 avg60=0.12 avg300=0.05 total={total}")
        return "\n".join([*lines, ""])

    return content


def add_interrupts(tree: Tree, machine: Machine, vectors: Vectors) -> None:
    """A second apart: the text of hundreds of CPUs is megabytes."""
    header = " " * 11 + "".join(f"CPU{cpu:<8}" for cpu in range(machine.cpus))
    zeros = " " * 9 + "0 "
    idle = zeros * machine.cpus

    def content(now: Moment) -> str:
        lines = [header]
        for line in vectors.lines:
            # one CPU's count is 32 bits wide
            fired = now.count(line.rate, line.rate * UPTIME, 32)
            row = idle[: line.cpu * 11] + f"{fired:>10} " + idle[(line.cpu + 1) * 11 :]
            lines.append(f"{line.number:>4}: {row} {line.chip}    {line.name}")
        lines += _architecture(machine, now)
        return "\n".join([*lines, ""])

    tree.write("proc/interrupts", content, period=1.0)


def _architecture(machine: Machine, now: Moment) -> Iterator[str]:
    arm = machine.arch == "aarch64"
    for name, (rate, meaning) in (_ARM_ROWS if arm else _X86_ROWS).items():
        counts = (now.count(rate * (cpu % 3 + 1), rate * UPTIME, 32) for cpu in range(machine.cpus))
        yield f"{name:>4}: " + " ".join(f"{count:>10}" for count in counts) + f"   {meaning}"
    if arm:
        yield f" Err: {0:>10}"
    else:
        yield f" ERR: {0:>10}"
        yield f" MIS: {0:>10}"


def add_memory(tree: Tree, machine: Machine) -> None:
    """meminfo, vmstat and buddyinfo say the same of one memory, each in its unit."""
    tree.write("proc/meminfo", lambda now: meminfo(machine, now))
    keys = recorded_names.vmstat_keys(machine.kernel)
    tree.write("proc/vmstat", lambda now: vmstat(machine, keys, now))
    tree.write("proc/buddyinfo", lambda now: buddyinfo(machine, now))
    tree.write("proc/zoneinfo", "")


# of all memory, in thousandths
_SHARES = {
    "MemFree": 420, "MemAvailable": 700, "Buffers": 2, "Cached": 260, "SwapCached": 0,
    "Active": 180, "Inactive": 160, "Active(anon)": 90, "Inactive(anon)": 20, "Active(file)": 90,
    "Inactive(file)": 140, "Unevictable": 4, "Mlocked": 4, "Dirty": 1, "Writeback": 0,
    "AnonPages": 110, "Mapped": 12, "Shmem": 9, "KReclaimable": 18, "Slab": 30,
    "SReclaimable": 18, "SUnreclaim": 12, "KernelStack": 1, "PageTables": 2,
}  # fmt: skip
_MOVES = {"MemFree", "MemAvailable", "Cached", "AnonPages", "Active", "Active(anon)"}


def levels(machine: Machine, now: Moment, memory: int) -> dict[str, int]:
    """Bytes of each kind for ``memory`` bytes: the host's, or one node's."""
    found = {}
    for name, share in _SHARES.items():
        bytes_ = memory * share // 1000
        swing = memory // 200 if name in _MOVES else 0
        found[name] = now.level(bytes_, swing) // machine.page * machine.page
    return found


def meminfo(machine: Machine, now: Moment) -> str:
    fields = {"MemTotal": machine.memory, **levels(machine, now, machine.memory)}
    fields |= {"SwapTotal": 0, "SwapFree": 0, "CommitLimit": machine.memory // 2}
    fields |= {"Committed_AS": machine.memory // 5, "VmallocTotal": 1 << 45}
    lines = [f"{name + ':':<15} {value >> 10:>8} kB" for name, value in fields.items()]
    pages = ("Total", "Free", "Rsvd", "Surp")
    lines += [f"{'HugePages_' + word + ':':<15} {0:>8}" for word in pages]
    huge = 512 << 20 if machine.page == 65_536 else 2 << 20
    lines += [f"{'Hugepagesize:':<15} {huge >> 10:>8} kB", f"{'Hugetlb:':<15} {0:>8} kB", ""]
    return "\n".join(lines)


_VM_LEVELS = {
    "nr_free_pages": "MemFree", "nr_zone_inactive_anon": "Inactive(anon)",
    "nr_zone_active_anon": "Active(anon)", "nr_zone_inactive_file": "Inactive(file)",
    "nr_zone_active_file": "Active(file)", "nr_zone_unevictable": "Unevictable",
    "nr_mlock": "Mlocked", "nr_inactive_anon": "Inactive(anon)",
    "nr_active_anon": "Active(anon)", "nr_inactive_file": "Inactive(file)",
    "nr_active_file": "Active(file)", "nr_unevictable": "Unevictable",
    "nr_slab_reclaimable": "SReclaimable", "nr_slab_unreclaimable": "SUnreclaim",
    "nr_anon_pages": "AnonPages", "nr_mapped": "Mapped", "nr_file_pages": "Cached",
    "nr_dirty": "Dirty", "nr_shmem": "Shmem", "nr_page_table_pages": "PageTables",
}  # fmt: skip
_VM_RATES = {
    "numa_hit": 50_000, "numa_local": 49_000, "numa_miss": 3, "numa_foreign": 3,
    "numa_other": 1000, "pgpgin": 4_000, "pgpgout": 9_000, "pgalloc_normal": 60_000,
    "pgalloc_dma32": 20, "pgfree": 60_000, "pgfault": 42_000, "pgmajfault": 2,
    "pgactivate": 300, "pgscan_kswapd": 90, "pgsteal_kswapd": 88, "pgscan_file": 90,
    "pgsteal_file": 88, "pgreuse": 800, "nr_dirtied": 2_000, "nr_written": 1_900,
    "workingset_refault_file": 7, "thp_fault_alloc": 11, "thp_fault_fallback": 1,
    "numa_pte_updates": 100, "numa_hint_faults": 80, "numa_hint_faults_local": 70,
    "numa_pages_migrated": 5, "pgmigrate_success": 6, "compact_stall": 1,
}  # fmt: skip


def vmstat(machine: Machine, keys: list[str], now: Moment) -> str:
    bytes_ = levels(machine, now, machine.memory)
    lines = []
    for key in keys:
        if key in _VM_LEVELS:
            value = bytes_[_VM_LEVELS[key]] // machine.page
        elif key == "nr_kernel_stack":  # the only one in kB
            value = bytes_["KernelStack"] >> 10
        else:
            value = now.count(_VM_RATES.get(key, 0), 60 * _VM_RATES.get(key, 0))
        lines.append(f"{key} {value}")
    return "\n".join([*lines, ""])


def buddyinfo(machine: Machine, now: Moment) -> str:
    lines = []
    for node in range(machine.numa_nodes):
        zones = ("DMA", "DMA32", "Normal") if node == 0 else ("Normal",)
        for zone in zones if machine.arch == "x86_64" else ("Normal",):
            blocks = [now.level(900 >> order, 40 >> order) for order in range(10)]
            free = machine.memory // machine.numa_nodes * 2 // 5 // (machine.page << 10)
            large = free if zone == "Normal" else 3
            row = "".join(f" {count:>6}" for count in [*blocks, large])
            lines.append(f"Node {node}, zone {zone:>8}{row} ")
    return "\n".join([*lines, ""])


def diskstats(machine: Machine, now: Moment) -> str:
    """admin-guide/iostats.rst: 20 columns since 5.5; times are 32-bit milliseconds."""
    lines = []
    for minor, disk in enumerate(machine.disks):
        major = 259 if disk.name.startswith("nvme") else 254
        names = [disk.name]
        mark = "p" if disk.name[-1].isdigit() else ""
        names += [f"{disk.name}{mark}{part}" for part in range(1, disk.partitions + 1)]
        row = disk_stat(disk, now)
        lines += [
            f"{major:>4} {minor * 16 + index:>7} {name} {row}" for index, name in enumerate(names)
        ]
    lines += [f"{7:>4} {minor:>7} loop{minor} {UNUSED_DISK}" for minor in range(8)]
    return "\n".join([*lines, ""])


def disk_stat(disk: Disk, now: Moment) -> str:
    """testing/sysfs-block: the numbers of /proc/diskstats, in a file of the disk's own."""
    return " ".join(str(now.count(*column)) for column in _disk_columns(disk.rate))


def _disk_columns(rate: int) -> list[tuple[float, int, int]]:
    """(rate, start, bits): half reads, half writes of 16 KiB, 0.2 ms each."""
    requests, sectors, spent = rate / 2, rate * 16, rate / 10
    start = rate * UPTIME
    reads = [(requests, start, 64), (rate / 20, start // 20, 64), (sectors, start * 16, 64),
             (spent, start // 10, 32)]  # fmt: skip
    near_the_end = 2**32 - 500  # the time of writes wraps within a minute
    writes = [*reads[:3], (spent * 4, near_the_end, 32)]
    queue = [(0, 0, 64), (spent * 2, start // 5, 32), (spent * 5, start // 2, 32)]
    discards = [(0, 0, 64)] * 4
    flushes = [(rate / 50, start // 50, 64), (rate / 500, start // 500, 32)]
    return [*reads, *writes, *queue, *discards, *flushes]


def add_process(tree: Tree, pid: int, name: str, cpu: float = 0.1, parent: int = 1) -> None:
    """A program that uses ``cpu`` CPUs, its own process group: proc_pid_stat(5) and ``io``."""

    def content(now: Moment) -> str:
        ticks = now.count(cpu * 100, 5_000)
        fields = [
            "S", parent, pid, pid, 0, -1, 4_194_304, now.count(50, 9_000), 0, 3, 0,
            ticks, ticks // 5, 0, 0, 20, 0, 4, 0, UPTIME * 100 - 5_000, 2 * GIB, 25_000,
            *[0] * 28,
        ]  # fmt: skip
        return f"{pid} ({name}) {' '.join(map(str, fields))}\n"

    tree.write(f"proc/{pid}/stat", content)
    tree.write(f"proc/{pid}/comm", f"{name}\n")
    tree.write(
        f"proc/{pid}/io",
        lambda now: (
            f"rchar: 9\nwchar: 9\nsyscr: 1\nsyscw: 1\nread_bytes: {now.count(cpu * 1e6)}\n"
            f"write_bytes: {now.count(cpu * 2e6)}\ncancelled_write_bytes: 0\n"
        ),
    )
    tree.write(f"proc/{pid}/cgroup", "0::/\n")
