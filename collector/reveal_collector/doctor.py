"""What this host gives, what it does not and why, and what would grant it.

``inventory`` opens every source once and closes it again; ``reveal catalog`` shows its rows,
``reveal doctor`` its advice.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from reveal_collector.native import LoadedLibrary, load
from reveal_collector.readers.source import Roots, Source
from reveal_collector.readers.sysfs_attributes import parse_fields
from reveal_collector.registry import MissingSource, probe_all
from reveal_contract.catalogue import find
from reveal_contract.settings import CollectorSettings

# bits of CapEff, capabilities(7)
_CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH, _CAP_SYS_PTRACE, _CAP_SYS_NICE = 1, 2, 19, 23

# what is lost without a source, for the reader of the advice
_GIVES = {
    "psi": "how long tasks waited for CPU, memory and I/O: the plainest sign of contention",
    "perf": "context switches, migrations and page faults by CPU",
    "tracepoints": "single events: retransmissions, OOM kills, failed requests, direct reclaim",
    "cpuclock": "CPU time finer than ticks of 10 ms",
    "pmu": "instructions per cycle, branch and cache misses, stalls on memory",
    "msr": "busy share and clock while busy of the CPUs (Busy%, Bzy_MHz)",
    "cpufreq": "CPU clocks",
    "frequency-limits": "clocks held down by a policy",
    "throttling": "thermal throttling of packages",
    "core-throttling": "thermal throttling of cores",
    "energy": "power of packages and DRAM (PkgWatt, RAMWatt)",
    "uncore": "memory bandwidth by package",
    "hwmon": "temperature of packages (PkgTmp)",
    "sensors": "temperature of cores, drives, modules and boards",
    "smi": "time the firmware takes from all CPUs (SMI)",
    "cpuidle": "idle states and how often CPUs wake up",
    "cstates": "residency of cores and packages in C-states",
    "qdisc": "what bandwidth limits of this host hold back and drop",
    "tcpdiag": "TCP connections by state and what they have in flight",
    "nic": "link state and its changes",
    "nicstats": "link speed and errors the card itself counts",
    "numa": "memory by NUMA node",
    "nvml": "what GPUs do: utilisation, memory, power, clocks",
    "nvml-state": "what holds GPUs back: heat, power, memory errors, links, XID errors",
    "nvml-subjects": "who uses the GPUs",
    "hugepages": "huge page pools by size and node",
    "snmp6": "IPv6 traffic and errors",
    "sockstat6": "IPv6 sockets",
    "cgroups": "which cgroup or unit is at fault",
    "edac": "memory errors by controller and module, before they stop the host",
    "pcie": "PCIe lanes and speed in use against what both ends can do",
    "aer": "errors on the PCIe links of GPUs, network cards and NVMe drives",
    "infiniband": "traffic of InfiniBand and RoCE ports",
    "infiniband-errors": "errors, congestion and state of InfiniBand and RoCE ports",
    "ethtool": "drops, pauses and stalls inside network cards",
    "amdgpu": "load, memory, clocks, power and errors of AMD GPUs",
    "process-groups": "which process group is at fault, where there are no cgroups",
}


@dataclass(frozen=True, slots=True)
class ChannelRow:
    """One channel of this host, as people and ``--json`` see it."""

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
    """Something this host lacks: what it would give and how to grant it."""

    missing: str
    gives: str
    remedy: str


@dataclass(frozen=True)
class Diagnosis:
    rows: tuple[ChannelRow, ...]
    missing: tuple[MissingSource, ...]
    advice: tuple[Advice, ...]


@dataclass(frozen=True, slots=True)
class Privileges:
    """What the process may do, as far as collecting depends on it."""

    root: bool
    real_time: bool
    sees_others: bool  # what /proc shows of a process to who might trace it
    reads_all: bool  # files and folders that are closed to others


def diagnose(roots: Roots, settings: CollectorSettings) -> Diagnosis:
    """All channels of the host under ``roots`` and what is missing.

    Raises ``SettingsError`` when the settings name a source that does not exist.
    """
    probed = probe_all(roots, settings)
    try:
        rows = tuple(row for source in probed.sources for row in _rows(source))
    finally:
        for source in probed.sources:
            source.close()
    return Diagnosis(
        rows, tuple(probed.missing), tuple(advice(roots, probed.missing, current_privileges()))
    )


def advice(roots: Roots, missing: Iterable[MissingSource], privileges: Privileges) -> list[Advice]:
    """What to do about what is missing, the most rewarding first."""
    found = [
        Advice(
            f"{lacking.source}: {lacking.reason}", _GIVES.get(lacking.source, ""), lacking.remedy
        )
        for lacking in missing
    ]
    found.sort(key=lambda each: _rank(each.missing.partition(":")[0]))
    if not roots.live:
        return found
    return [*_of_process(privileges), *_of_build(load()), *found, *_of_host(roots)]


def current_privileges() -> Privileges:
    """The privileges of this process."""
    limit, _ = resource.getrlimit(resource.RLIMIT_RTPRIO)
    granted = capabilities(Path("/proc/self/status").read_text())
    return Privileges(
        root=os.geteuid() == 0,
        real_time=bool(granted >> _CAP_SYS_NICE & 1) or limit != 0,
        sees_others=bool(granted >> _CAP_SYS_PTRACE & 1),
        reads_all=bool((granted >> _CAP_DAC_READ_SEARCH | granted >> _CAP_DAC_OVERRIDE) & 1),
    )


def capabilities(status: str) -> int:
    """The effective capabilities of ``/proc/PID/status`` as a bit set; 0 where it has none."""
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


def _of_process(privileges: Privileges) -> list[Advice]:
    found = []
    if not privileges.root:
        found.append(
            Advice(
                "not run as root",
                "the host's own network namespace, other users' processes, tracepoints",
                "run with sudo, or grant CAP_PERFMON, CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH",
            )
        )
    else:
        found += _of_bounded_root(privileges)
    if not privileges.real_time:
        found.append(
            Advice(
                "SCHED_FIFO is not permitted",
                "ticks on time when the host is saturated: 0.1 ms late instead of 10 ms",
                "grant CAP_SYS_NICE, or set an rtprio limit of 1 for the user",
            )
        )
    return found


def _of_bounded_root(privileges: Privileges) -> list[Advice]:
    """Root without all of root's rights, as a container has it."""
    found = []
    if not privileges.sees_others:
        found.append(
            Advice(
                "CAP_SYS_PTRACE is not held",
                "network by pod, what process groups read and write, room on the host's file"
                " systems",
                "grant CAP_SYS_PTRACE, and lift AppArmor's profile of the container",
            )
        )
    if not privileges.reads_all:
        found.append(
            Advice(
                "CAP_DAC_READ_SEARCH is not held",
                "what process groups of other users read and write, room on file systems below"
                " closed folders",
                "grant CAP_DAC_READ_SEARCH",
            )
        )
    return found


def _of_build(native: LoadedLibrary) -> list[Advice]:
    """Where the C parts are not in use."""
    if native.library is not None:
        return []
    return [
        Advice(
            native.unavailable,
            "the same samples at half the CPU and half the memory",
            "install a C compiler (Debian, Ubuntu: apt install gcc libc6-dev) and install anew",
        )
    ]


def _of_host(roots: Roots) -> list[Advice]:
    found = []
    if not (roots.cgroup / "cgroup.controllers").exists():
        found.append(
            Advice(
                "cgroup version 2 is not the host's main hierarchy",
                "pressure and I/O by unit, all controllers in one place",
                "boot with systemd.unified_cgroup_hierarchy=1",
            )
        )
    return found
