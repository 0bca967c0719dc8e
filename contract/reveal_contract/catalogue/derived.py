"""Catalogue rows: computed by the analyzer from other channels."""

from __future__ import annotations

from collections.abc import Callable

from reveal_contract.metric import Harm, Kind, Lane, Metric, Scope, Subsystem

ROWS: tuple[Metric, ...] = (
    Metric(
        "cpu.busy", "ns", Kind.RATIO, Subsystem.CPU, Scope.NODE, "derived", Lane.DERIVED,
        "Busy%", "CPU time spent on anything but idling and waiting for I/O, over all CPUs",
        quantum=3e7, family="cpu.busy",
    ),
    Metric(
        "cpu.busiest", "ns", Kind.RATIO, Subsystem.CPU, Scope.NODE, "derived", Lane.DERIVED,
        "Busy% of one CPU", "CPU time of the busiest CPU", quantum=3e7, family="cpu.busy",
    ),
    Metric(
        "cpu.imbalance", "ns", Kind.RATIO, Subsystem.CPU, Scope.NODE, "derived", Lane.DERIVED,
        "max - min of Busy%", "How much busier the busiest CPU is than the idlest",
        quantum=1e8,
    ),
    Metric(
        "cpu.stalled_subjects", "1", Kind.RATIO, Subsystem.CPU, Scope.NODE, "derived",
        Lane.DERIVED, "cpuacct.usage, pids.current",
        "Subjects that worked steadily and now get no CPU time though they are alive",
        quantum=1, harm=Harm.HIGHER,
    ),
    Metric(
        "memory.huge_pages_reserved_share", "ppm", Kind.RATIO, Subsystem.MEMORY, Scope.NODE,
        "derived", Lane.DERIVED, "HugePages_Total * Hugepagesize / MemTotal",
        "Memory set aside as huge pages of the default size, per million of all memory",
        quantum=2000, harm=Harm.HIGHER, family="memory.huge_pages_total",
    ),
    Metric(
        "network.tcp.retransmit_share", "ppm", Kind.RATIO, Subsystem.NETWORK, Scope.NODE,
        "derived", Lane.DERIVED, "TcpRetransSegs / TcpOutSegs",
        "Sent TCP segments that were retransmissions, per million",
        quantum=300, harm=Harm.HIGHER, family="network.tcp.retransmit_share",
    ),
    Metric(
        "storage.disk.await", "ns", Kind.RATIO, Subsystem.STORAGE, Scope.DISK, "derived",
        Lane.DERIVED, "await", "Mean time a request took on the device, queue included",
        quantum=5e5, harm=Harm.HIGHER, family="storage.disk.await",
    ),
)  # fmt: skip
PATTERNS: tuple[Callable[[str], Metric | None], ...] = ()
