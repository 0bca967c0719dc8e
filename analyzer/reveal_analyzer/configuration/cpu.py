"""Rules on processors and clocks."""

from __future__ import annotations

from collections.abc import Iterator

from reveal_analyzer.configuration.rule import Broken, Rule, fact
from reveal_contract import cpulist
from reveal_contract.facts import Facts
from reveal_contract.finding import Severity
from reveal_contract.metric import Subsystem

# drivers whose "powersave" is a scaling algorithm of their own, not the lowest clock
_SELF_SCALING = ("intel_pstate", "amd-pstate-epp", "amd_pstate_epp")
_SLOW_CLOCKS = ("hpet", "acpi_pm", "pit", "jiffies", "refined-jiffies")
_MUCH_LOWER = 0.8  # of the possible clock: less is more than leaving out the boost


def lowest_clock(facts: Facts) -> Iterator[Broken]:
    """The powersave governor of a driver that takes it literally."""
    for policy in facts.cpu.policies:
        if policy.governor != "powersave" or not policy.driver or policy.driver in _SELF_SCALING:
            continue
        if policy.lowest is not None and policy.lowest == policy.possible:
            continue  # one clock only: nothing to lose
        clock = f"{policy.lowest / 1e6:.1f} GHz" if policy.lowest else "their lowest clock"
        yield Broken(
            policy.cpus,
            {"cpus": policy.cpus, "driver": policy.driver, "clock": clock},
            (fact("cpu.governor", policy.cpus, "powersave", "performance",
                  known_as="scaling_governor"),),
        )  # fmt: skip


def power_preference(facts: Facts) -> Iterator[Broken]:
    for policy in facts.cpu.policies:
        if policy.preference == "power" and policy.governor != "performance":
            yield Broken(
                policy.cpus,
                {"cpus": policy.cpus},
                (fact("cpu.energy_preference", policy.cpus, "power", "balance_performance",
                      known_as="energy_performance_preference"),),
            )  # fmt: skip


def capped_clock(facts: Facts) -> Iterator[Broken]:
    for policy in facts.cpu.policies:
        highest, possible = policy.highest, policy.possible
        if not highest or not possible or highest >= _MUCH_LOWER * possible:
            continue
        if facts.cpu.boost is False:
            continue  # without boost the limit is the nominal clock, and chosen so
        yield Broken(
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


def offline_cpus(facts: Facts) -> Iterator[Broken]:
    """CPUs that were taken offline one by one; switching SMT off is a choice of its own."""
    cpu = facts.cpu
    if facts.kernel.virtual is not False or not cpu.present or not cpu.online:
        return
    if cpu.smt in ("off", "forceoff"):
        return
    gone = cpulist.parse(cpu.present) - cpulist.parse(cpu.online)
    if gone:
        cpus = cpulist.render(gone)
        yield Broken(
            "",
            {"cpus": cpus, "first": min(gone)},
            (fact("cpu.online", "", cpu.online, cpu.present, known_as="cpu/online"),),
        )


def slow_clock(facts: Facts) -> Iterator[Broken]:
    clock, others = facts.kernel.clocksource, facts.kernel.clocksources
    if clock not in _SLOW_CLOCKS or not any("tsc" in flag for flag in facts.cpu.clock_flags):
        return
    advice = (
        "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource"
        if "tsc" in others
        else "the kernel gave the TSC up: see `dmesg | grep -i -e tsc -e clocksource`, update the"
        " firmware; boot with tsc=reliable only where the vendor vouches for it"
    )
    yield Broken(
        "",
        {"clock": clock, "advice": advice},
        (fact("kernel.clocksource", "", clock, "tsc", known_as="current_clocksource"),),
    )


RULES = (
    Rule(
        "LowestClockGovernor", Subsystem.CPU, Severity.MEDIUM,
        "CPUs {cpus} are held at {clock}: the powersave governor of {driver} never raises it",
        "cpupower frequency-set -g performance",
        "With drivers that do not scale by themselves, powersave asks for the lowest clock of"
        " the policy, whatever the load. In active mode intel_pstate and amd_pstate have an"
        " algorithm of their own under that name; they are left alone.",
        "kernel: admin-guide/pm/cpufreq.rst (generic governors), admin-guide/pm/intel_pstate.rst",
        lowest_clock,
    ),
    Rule(
        "EnergyPreferencePower", Subsystem.CPU, Severity.LOW,
        "CPUs {cpus} prefer saving power to speed: their clock rises late and not all the way",
        "echo balance_performance | tee"
        " /sys/devices/system/cpu/cpufreq/policy*/energy_performance_preference",
        "The energy-performance preference tells the processor's own clock control how eagerly"
        " to raise clocks; `power` is the least eager.",
        "kernel: admin-guide/pm/intel_pstate.rst (energy vs performance hints),"
        " admin-guide/pm/amd-pstate.rst",
        power_preference,
    ),
    Rule(
        "ClockLimited", Subsystem.CPU, Severity.LOW,
        "CPUs {cpus} may run at {limit} GHz at most, they could at {possible}",
        "cpupower frequency-set -u {khz}",
        "Someone lowered scaling_max_freq by more than a fifth below what the CPU can do. Where"
        " boost is switched off, nothing is said.",
        "kernel: admin-guide/pm/cpufreq.rst (scaling_max_freq, cpuinfo_max_freq)",
        capped_clock,
    ),
    Rule(
        "CPUsOffline", Subsystem.CPU, Severity.LOW,
        "CPUs {cpus} are present but offline: no job can use them",
        "echo 1 > /sys/devices/system/cpu/cpu{first}/online (and so for each)",
        "CPUs were taken offline one by one, on bare metal. SMT switched off as a whole is a"
        " choice and is not meant.",
        "kernel: core-api/cpu_hotplug.rst",
        offline_cpus,
    ),
    Rule(
        "SlowClocksource", Subsystem.CPU, Severity.MEDIUM,
        "the kernel keeps time by {clock}: every look at the clock is a system call and a slow"
        " read of a shared device",
        "{advice}",
        "Programs read the clock through the vDSO without a system call only where the clock"
        " source allows it: the TSC does, and the paravirtual clocks of hypervisors; hpet and"
        " acpi_pm are device registers, read one CPU at a time.",
        "kernel: timers/timekeeping.rst, virt/kvm/x86/timekeeping.rst",
        slow_clock,
    ),
)  # fmt: skip
