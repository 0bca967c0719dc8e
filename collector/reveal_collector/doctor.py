"""Diagnosis of a host: which channels it provides, what is missing and why, and the remedy.

``diagnose`` opens every source once and closes it again.  ``reveal catalog`` displays its rows,
``reveal doctor`` its advice.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from reveal_collector.native import LoadedLibrary, load
from reveal_collector.readers.host_constants import host_constants
from reveal_collector.readers.source import Roots, Source, degraded_of
from reveal_collector.readers.sysfs_attributes import parse_fields
from reveal_collector.registry import MissingSource, probe_all
from reveal_contract import ledger
from reveal_contract.catalogue import find
from reveal_contract.settings import CollectorSettings

# bits of CapEff, capabilities(7)
_CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH, _CAP_SYS_PTRACE, _CAP_SYS_NICE = 1, 2, 19, 23

# what each source measures, for the reader of the advice; the most useful source first
_GIVES = {
    "psi": "how long tasks wait for CPU, memory and I/O: the clearest sign of contention",
    "perf": "context switches, migrations and page faults by CPU",
    "tracepoints": "single events: retransmissions, OOM kills, failed requests, direct reclaim",
    "cpuclock": "CPU time finer than ticks of 10 ms",
    "pmu": "instructions per cycle, branch and cache misses, stalls on memory",
    "msr": "busy time of CPUs and their clock while busy (Busy%, Bzy_MHz)",
    "cpufreq": "CPU clocks",
    "frequency-limits": "CPU clocks that a policy limits",
    "throttling": "thermal throttling of packages",
    "core-throttling": "thermal throttling of cores",
    "energy": "power of packages and DRAM (PkgWatt, RAMWatt)",
    "uncore": "memory bandwidth by package",
    "hwmon": "temperature of packages (PkgTmp)",
    "sensors": "temperature of cores, drives, modules and boards",
    "smi": "time that firmware takes from all CPUs (SMI)",
    "cpuidle": "idle states and how often CPUs wake up",
    "cstates": "residency of cores and packages in C-states",
    "qdisc": "packets that bandwidth limits of this host delay and drop",
    "tcpdiag": "TCP connections by state, and their data in flight",
    "nic": "link state and its changes",
    "nicstats": "link speed, and errors that the card counts",
    "numa": "memory by NUMA node",
    "nvml": "GPU utilization, memory, power and clocks",
    "nvml-state": "what slows GPUs: heat, power limits, memory errors, links, XID errors",
    "nvml-subjects": "which pod or process uses each GPU",
    "hugepages": "huge page pools by size and node",
    "snmp6": "IPv6 traffic and errors",
    "sockstat6": "IPv6 sockets",
    "cgroups": "CPU, memory and I/O by pod, unit and other cgroup",
    "subject-starts": "starts of containers in pods, whose first work is no anomaly",
    "edac": "memory errors by controller and module, before they crash the host",
    "md": "disks missing in software RAID arrays, and their rebuilds and checks",
    "pcie": "PCIe lanes and speed in use, compared with what both ends support",
    "aer": "errors on the PCIe links of GPUs, network cards and NVMe drives",
    "infiniband": "traffic of InfiniBand and RoCE ports",
    "infiniband-errors": "errors, congestion and state of InfiniBand and RoCE ports",
    "ethtool": "drops, pauses and stalls inside network cards",
    "amdgpu": "load, memory, clocks, power and errors of AMD GPUs",
    "ledger": "where the time of each pod went, and which other one took it",
    ledger.THREADS_SOURCE: "the same from times of threads: how long each pod waited, not for whom",
    "process-groups": "CPU and I/O by process group, where there are no cgroups",
}


@dataclass(frozen=True, slots=True)
class ChannelRow:
    """One channel of this host, as ``reveal catalog`` prints it."""

    channel: str
    metric: str
    instance: str
    unit: str
    kind: str
    lane: str
    subsystem: str
    source: str
    origin: str
    meaning: str
    harm: str


@dataclass(frozen=True, slots=True)
class Advice:
    """What is missing on this host, what it would measure, and the remedy."""

    missing: str
    gives: str
    remedy: str


@dataclass(frozen=True)
class Diagnosis:
    """All channels of a host, its missing sources, and the advice.

    ``hung`` are the drivers that did not answer: who asks them again waits again.
    """

    rows: tuple[ChannelRow, ...]
    missing: tuple[MissingSource, ...]
    advice: tuple[Advice, ...]
    hung: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Privileges:
    """Rights of the process on which collecting depends."""

    root: bool
    real_time: bool
    sees_others: bool  # reads entries in /proc that need the right to trace a process
    reads_all: bool  # reads files and folders without read permission


def diagnose(roots: Roots, settings: CollectorSettings) -> Diagnosis:
    """Return all channels of the host under ``roots`` and what is missing.

    Raises ``SettingsError`` where the settings name an unknown source.
    """
    probed = probe_all(roots, settings)
    try:
        rows = tuple(row for source in probed.sources for row in _rows(source))
        limits = [
            Advice(phrase, _GIVES.get(source.name, ""), "")
            for source in probed.sources
            for phrase in degraded_of(source)
        ]
    finally:
        for source in probed.sources:
            source.close()
    limits += [Advice(phrase, "", "") for phrase in host_constants(roots).assumed]
    found = advice(roots, probed.missing, current_privileges())
    hung = frozenset(opening.driver for opening in probed.hung.values())
    return Diagnosis(rows, tuple(probed.missing), (*found, *limits), hung)


def advice(roots: Roots, missing: Iterable[MissingSource], privileges: Privileges) -> list[Advice]:
    """Return the advice for what is missing, the most useful first."""
    found = [
        Advice(f"{each.source}: {each.reason}", _GIVES.get(each.source, ""), each.remedy)
        for each in missing
    ]
    found.sort(key=lambda each: _rank(each.missing.partition(":")[0]))
    if not roots.live:
        return found
    return [*_process_advice(privileges), *_build_advice(load()), *found, *_host_advice(roots)]


def current_privileges() -> Privileges:
    """Return the privileges of this process."""
    limit, _ = resource.getrlimit(resource.RLIMIT_RTPRIO)
    granted = capabilities(Path("/proc/self/status").read_text())
    return Privileges(
        root=os.geteuid() == 0,
        real_time=bool(granted >> _CAP_SYS_NICE & 1) or limit != 0,
        sees_others=bool(granted >> _CAP_SYS_PTRACE & 1),
        reads_all=bool((granted >> _CAP_DAC_READ_SEARCH | granted >> _CAP_DAC_OVERRIDE) & 1),
    )


def capabilities(status: str) -> int:
    """Return the effective capabilities in ``/proc/PID/status`` as a bit set; 0 without any."""
    return int(parse_fields(status).get("CapEff", "0"), 16)


def _rows(source: Source) -> list[ChannelRow]:
    rows = []
    for channel in source.channels:
        metric = find(channel.metric)
        rows.append(
            ChannelRow(
                channel.label, channel.metric, channel.instance, metric.unit, channel.kind.value,
                source.lane.value, metric.subsystem.value, source.name, metric.origin,
                metric.meaning, metric.harm.value,
            )
        )  # fmt: skip
    return rows


def _rank(source: str) -> int:
    order = list(_GIVES)
    return order.index(source) if source in order else len(order)


def _process_advice(privileges: Privileges) -> list[Advice]:
    found = []
    if not privileges.root:
        found.append(
            Advice(
                "not run as root",
                "the host's network namespace, processes of other users, tracepoints",
                "run with sudo, or grant CAP_PERFMON, CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH",
            )
        )
    else:
        found += _container_advice(privileges)
    if not privileges.real_time:
        found.append(
            Advice(
                "SCHED_FIFO is not permitted",
                "punctual ticks on a saturated host: 0.1 ms late instead of 10 ms",
                "grant CAP_SYS_NICE, or set an rtprio limit of 1 for the user",
            )
        )
    return found


def _container_advice(privileges: Privileges) -> list[Advice]:
    """Return the advice for root without all of root's rights, as in a container."""
    found = []
    if not privileges.sees_others:
        found.append(
            Advice(
                "CAP_SYS_PTRACE is not held",
                "network traffic by pod, I/O of process groups, free space on the host's file"
                " systems",
                "grant CAP_SYS_PTRACE, and run without the container's AppArmor profile",
            )
        )
    if not privileges.reads_all:
        found.append(
            Advice(
                "CAP_DAC_READ_SEARCH is not held",
                "I/O of other users' process groups, free space on file systems below folders"
                " without read permission",
                "grant CAP_DAC_READ_SEARCH",
            )
        )
    return found


def _build_advice(native: LoadedLibrary) -> list[Advice]:
    """Return the advice for a collector without its C parts."""
    if native.library is not None:
        return []
    return [
        Advice(
            native.unavailable,
            "the same samples at half the CPU and half the memory",
            "install a C compiler (Debian, Ubuntu: apt install gcc libc6-dev) and reinstall",
        )
    ]


def _host_advice(roots: Roots) -> list[Advice]:
    found = []
    if not (roots.cgroup / "cgroup.controllers").exists():
        found.append(
            Advice(
                "cgroup version 2 is not the host's main hierarchy",
                "pressure and I/O by unit, all controllers in one hierarchy",
                "boot with systemd.unified_cgroup_hierarchy=1",
            )
        )
    return found
