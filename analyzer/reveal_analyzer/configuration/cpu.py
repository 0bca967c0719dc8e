"""Rules on processors and clocks."""

from __future__ import annotations

from collections.abc import Iterator

from reveal_analyzer.configuration.rule import (
    ConfigurationRule,
    Unknown,
    Verdict,
    Violation,
    fact,
)
from reveal_contract import cpulist
from reveal_contract.facts import Facts
from reveal_contract.finding import Severity
from reveal_contract.metric import Subsystem

# drivers whose "powersave" is their own scaling algorithm instead of the lowest clock
_SELF_SCALING = ("intel_pstate", "amd-pstate-epp", "amd_pstate_epp")
_SLOW_CLOCKS = ("hpet", "acpi_pm", "pit", "jiffies", "refined-jiffies")
_MUCH_LOWER = 0.8  # of the possible clock; a limit below is lower than one without boost


def lowest_clock(facts: Facts) -> Iterator[Verdict]:
    """Find the powersave governor of drivers that pin the lowest clock with it."""
    for policy in facts.cpu.policies:
        if not policy.governor or not policy.driver:
            yield Unknown(policy.cpus)
        if policy.governor != "powersave" or not policy.driver or policy.driver in _SELF_SCALING:
            continue
        if policy.lowest is None or policy.possible is None:
            yield Unknown(policy.cpus)
        if policy.lowest is not None and policy.lowest == policy.possible:
            continue  # one clock only: nothing to lose
        clock = f"{policy.lowest / 1e6:.1f} GHz" if policy.lowest else "their lowest clock"
        yield Violation(
            policy.cpus,
            {"cpus": policy.cpus, "driver": policy.driver, "clock": clock},
            (fact("cpu.governor", policy.cpus, "powersave", "performance",
                  known_as="scaling_governor"),),
        )  # fmt: skip


def power_preference(facts: Facts) -> Iterator[Verdict]:
    for policy in facts.cpu.policies:
        if not policy.governor or not policy.preference:
            yield Unknown(policy.cpus)
        if policy.preference == "power" and policy.governor != "performance":
            yield Violation(
                policy.cpus,
                {"cpus": policy.cpus},
                (fact("cpu.energy_preference", policy.cpus, "power", "balance_performance",
                      known_as="energy_performance_preference"),),
            )  # fmt: skip


def capped_clock(facts: Facts) -> Iterator[Verdict]:
    for policy in facts.cpu.policies:
        highest, possible = policy.highest, policy.possible
        if not highest or not possible:
            yield Unknown(policy.cpus)
        if not highest or not possible or highest >= _MUCH_LOWER * possible:
            continue
        if facts.cpu.boost is False:
            continue  # without boost the limit is the nominal clock, and chosen so
        yield Violation(
            policy.cpus,
            {
                "cpus": policy.cpus,
                "limit": f"{highest / 1e6:.1f}",
                "possible": f"{possible / 1e6:.1f}",
                "khz": possible,
            },
            (fact("cpu.frequency.limit", policy.cpus, highest * 1000, possible * 1000, "Hz",
                  "scaling_max_freq"),),
        )  # fmt: skip


def offline_cpus(facts: Facts) -> Iterator[Verdict]:
    """Find CPUs that were taken offline one by one.

    SMT that is off, and a number of CPUs that was limited at boot, are deliberate.
    """
    cpu = facts.cpu
    if facts.kernel.virtual is None or not cpu.present or not cpu.online:
        yield Unknown("")
        return
    if facts.kernel.virtual or cpu.smt in ("off", "forceoff") or _limited_by_boot(facts):
        return
    if _single_threads(facts):
        return
    gone = cpulist.parse(cpu.present) - cpulist.parse(cpu.online)
    if gone:
        cpus = cpulist.render(gone)
        yield Violation(
            "",
            {"cpus": cpus, "first": min(gone)},
            (fact("cpu.online", "", cpu.online, cpu.present, known_as="cpu/online"),),
        )


def _limited_by_boot(facts: Facts) -> bool:
    return any(flag.partition("=")[0] in ("maxcpus", "nr_cpus") for flag in facts.kernel.flags)


def _single_threads(facts: Facts) -> bool:
    """Return whether just the second thread of each core is offline: SMT that is off by hand."""
    online = len(cpulist.parse(facts.cpu.online))
    both = len(cpulist.parse(facts.cpu.present)) == 2 * online
    return facts.cpu.smt == "on" and both and facts.cpu.cores == online


def slow_clock(facts: Facts) -> Iterator[Verdict]:
    clock, others = facts.kernel.clocksource, facts.kernel.clocksources
    if not clock or not facts.cpu.clock_flags or not others:
        yield Unknown("")
    if clock not in _SLOW_CLOCKS or not any("tsc" in flag for flag in facts.cpu.clock_flags):
        return
    advice = (
        "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource"
        if "tsc" in others
        else "the kernel rejected the TSC: see `dmesg | grep -i -e tsc -e clocksource`, update the"
        " firmware; boot with tsc=reliable only if the vendor supports it"
    )
    yield Violation(
        "",
        {"clock": clock, "advice": advice},
        (fact("kernel.clocksource", "", clock, "tsc", known_as="current_clocksource"),),
    )


RULES = (
    ConfigurationRule(
        "LowestClockGovernor", Subsystem.CPU, Severity.MEDIUM,
        "CPUs {cpus} stay at {clock}: the powersave governor of {driver} never raises it",
        "cpupower frequency-set -g performance",
        "With drivers that do not scale the clock themselves, powersave requests the lowest clock"
        " of the policy at any load. In active mode, intel_pstate and amd_pstate use their own"
        " algorithm under that name; they are not reported.",
        "kernel: admin-guide/pm/cpufreq.rst (generic governors), admin-guide/pm/intel_pstate.rst",
        lowest_clock,
        ("cpu.policies",),
    ),
    ConfigurationRule(
        "EnergyPreferencePower", Subsystem.CPU, Severity.LOW,
        "CPUs {cpus} prefer saving power to speed: their clock rises late and not to its maximum",
        "echo balance_performance | tee"
        " /sys/devices/system/cpu/cpufreq/policy*/energy_performance_preference",
        "The energy-performance preference tells the processor's own clock control how eagerly"
        " to raise clocks; `power` is the least eager.",
        "kernel: admin-guide/pm/intel_pstate.rst (energy vs performance hints),"
        " admin-guide/pm/amd-pstate.rst",
        power_preference,
        ("cpu.policies",),
    ),
    ConfigurationRule(
        "ClockLimited", Subsystem.CPU, Severity.LOW,
        "CPUs {cpus} are limited to {limit} GHz, but support {possible}",
        "cpupower frequency-set -u {khz}",
        "scaling_max_freq is more than a fifth below what the CPU supports. Nothing is reported"
        " if boost is off.",
        "kernel: admin-guide/pm/cpufreq.rst (scaling_max_freq, cpuinfo_max_freq)",
        capped_clock,
        ("cpu.policies",),
    ),
    ConfigurationRule(
        "CPUsOffline", Subsystem.CPU, Severity.LOW,
        "CPUs {cpus} are present but offline: no job can use them",
        "echo 1 > /sys/devices/system/cpu/cpu{first}/online (repeat for each CPU)",
        "CPUs of a physical host were taken offline one by one. SMT that is off as a whole is"
        " deliberate and not reported, nor are second threads that are offline on every core, and"
        " CPUs beyond maxcpus= or nr_cpus= of the kernel command line.",
        "kernel: core-api/cpu_hotplug.rst",
        offline_cpus,
    ),
    ConfigurationRule(
        "SlowClocksource", Subsystem.CPU, Severity.MEDIUM,
        "the kernel keeps time with {clock}: each read of the clock is a system call and a slow"
        " access to a shared device",
        "{advice}",
        "Programs read the clock through the vDSO without a system call only if the clock source"
        " supports it, as the TSC and the paravirtual clocks of hypervisors do. hpet and acpi_pm"
        " are device registers that one CPU at a time can read.",
        "kernel: timers/timekeeping.rst, virt/kvm/x86/timekeeping.rst",
        slow_clock,
    ),
)  # fmt: skip
