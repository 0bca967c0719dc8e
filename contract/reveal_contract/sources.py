"""Names of the collector's built-in sources, for components without the collector.

``include`` and ``exclude`` of the settings hold such names.  Plugins may add others.
"""

from __future__ import annotations

# in the order of the collector's registry; a test compares the two
ALWAYS = (
    "stat", "online", "cpuclock", "softirqs", "interrupts", "loadavg", "meminfo", "vmstat",
    "numa", "hugepages", "buddyinfo", "psi", "diskstats", "netdev", "netstat", "snmp", "snmp6",
    "sockstat", "sockstat6", "softnet", "nic", "nicstats", "qdisc", "tcpdiag",
    "cpufreq",
    "frequency-limits", "throttling", "core-throttling", "cpuidle", "energy", "hwmon", "sensors",
    "msr", "smi", "cstates", "pmu", "uncore", "perf", "tracepoints", "edac", "pcie", "aer",
    "infiniband", "infiniband-errors", "ethtool", "amdgpu", "zram", "swaps", "filesystems",
    "nvml", "nvml-state", "nvml-subjects", "cgroup-cpu", "cgroups", "subject-network",
    "subject-storage", "process-groups", "subject-fine",
)  # fmt: skip
WITH_PERF_CGROUPS = ("subject-perf",)  # only where the settings ask for it
NAMES = (*ALWAYS, *WITH_PERF_CGROUPS)
