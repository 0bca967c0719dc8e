"""Names of the built-in sources of the collector, for components that do not import it.

``include`` and ``exclude`` in the settings contain such names.  Plugins of a site may add others.
"""

from __future__ import annotations

# In the order of the collector's registry; a test checks that both are equal.
ALWAYS = (
    "stat", "online", "cpuclock", "softirqs", "interrupts", "loadavg", "meminfo", "vmstat",
    "numa", "hugepages", "buddyinfo", "psi", "diskstats", "netdev", "netstat", "snmp", "snmp6",
    "sockstat", "sockstat6", "softnet", "nic", "nicstats", "qdisc", "tcpdiag",
    "cpufreq",
    "frequency-limits", "throttling", "core-throttling", "cpuidle", "energy", "hwmon", "sensors",
    "msr", "smi", "cstates", "pmu", "uncore", "perf", "tracepoints", "edac", "pcie", "aer",
    "infiniband", "infiniband-errors", "ethtool", "amdgpu", "zram", "md", "swaps", "filesystems",
    "nvml", "nvml-state", "nvml-subjects", "cgroup-cpu", "cgroups", "subject-starts",
    "subject-network", "subject-storage", "process-groups", "ledger", "ledger-threads",
    "subject-fine",
)  # fmt: skip
WITH_PERF_CGROUPS = ("subject-perf",)  # only where the settings ask for it
NAMES = (*ALWAYS, *WITH_PERF_CGROUPS)
