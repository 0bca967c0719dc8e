"""Clocks and throttling of each CPU (admin-guide/pm/cpufreq.rst, sysfs-devices-system-cpu)."""

from __future__ import annotations

from support.hosts.machine import Machine
from support.hosts.tree import Tree, rising, swinging

_CPU = "sys/devices/system/cpu"


def add_cpufreq(
    tree: Tree,
    machine: Machine,
    driver: str = "intel_pstate",
    governor: str = "performance",
    fastest: int = 3_800_000,
) -> None:
    """One policy a CPU, as with intel_pstate, amd-pstate and CPPC; clocks in kHz."""
    for cpu in range(machine.cpus):
        policy = f"{_CPU}/cpufreq/policy{cpu}"
        tree.link(f"{_CPU}/cpu{cpu}/cpufreq", f"../cpufreq/policy{cpu}")
        for name in ("affected_cpus", "related_cpus"):
            tree.write(f"{policy}/{name}", cpu)
        tree.write(f"{policy}/scaling_driver", f"{driver}\n")
        tree.write(f"{policy}/scaling_governor", f"{governor}\n")
        tree.write(f"{policy}/scaling_available_governors", "performance powersave\n")
        for name in ("cpuinfo_max_freq", "scaling_max_freq"):
            tree.write(f"{policy}/{name}", fastest)
        for name in ("cpuinfo_min_freq", "scaling_min_freq"):
            tree.write(f"{policy}/{name}", 800_000)
        middle = fastest - 500_000 - 1000 * cpu
        tree.write(f"{policy}/scaling_cur_freq", swinging(middle, 100_000))
    if driver == "intel_pstate":
        tree.write(f"{_CPU}/intel_pstate/status", "active\n")
        tree.write(f"{_CPU}/intel_pstate/no_turbo", 0)


def add_throttling(tree: Tree, machine: Machine, hot: int = 0) -> None:
    """Intel's counters; cores of package ``hot`` are throttled ten times a second."""
    for cpu in range(machine.cpus):
        rate = 10.0 if machine.socket(cpu) == hot else 0.0
        folder = f"{_CPU}/cpu{cpu}/thermal_throttle"
        core = machine.core(cpu)
        tree.write(f"{folder}/core_throttle_count", rising(rate, start=core))
        tree.write(f"{folder}/core_throttle_total_time_ms", rising(5 * rate, start=core))
        tree.write(f"{folder}/core_throttle_max_time_ms", 4)
        tree.write(f"{folder}/package_throttle_count", rising(rate, start=100))
        tree.write(f"{folder}/package_throttle_total_time_ms", rising(5 * rate, start=500))
        tree.write(f"{folder}/package_throttle_max_time_ms", 9)
