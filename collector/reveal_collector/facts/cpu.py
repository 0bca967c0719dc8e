"""Processors: model, topology, clocks, idle states, mitigations.

Kernel: admin-guide/cputopology.rst, admin-guide/pm/{cpufreq,cpuidle,intel_pstate}.rst,
admin-guide/hw-vuln; /proc/cpuinfo as each architecture writes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from reveal_collector.facts import files
from reveal_collector.readers.source import Roots
from reveal_contract import cpulist
from reveal_contract.facts import Cpu, FrequencyPolicy

_CLOCK_FLAGS = ("constant_tsc", "nonstop_tsc", "tsc_reliable", "tsc_known_freq", "hypervisor")


def identity(roots: Roots) -> Cpu:
    """What does not change while the host runs: the model and its topology."""
    folder = roots.sys / "devices/system/cpu"
    fields = first_processor(files.read_text(roots.proc / "cpuinfo"))
    flags = fields.get("flags", "").split()
    present = files.cpu_list(folder / "present")
    cores, sockets = topology(folder, present)
    return Cpu(
        vendor=fields.get("vendor_id") or ("ARM" if "CPU implementer" in fields else ""),
        model=fields.get("model name", ""),
        family=family(fields),
        sockets=sockets,
        cores=cores,
        threads=_threads(folder),
        present=present,
        isolated=files.cpu_list(folder / "isolated"),
        nohz_full=files.cpu_list(folder / "nohz_full"),
        clock_flags=tuple(flag for flag in _CLOCK_FLAGS if flag in flags),
        mitigations=mitigations(folder / "vulnerabilities"),
    )


def settings(roots: Roots, known: Cpu, thorough: bool) -> Cpu:
    """``known`` with what an operator can change: CPUs online, clocks, idle states.

    Unless ``thorough``, policies are taken as known while the first one is as it was: they
    are half a dozen files a CPU, and are set all at once.
    """
    folder = roots.sys / "devices/system/cpu"
    idle = folder / "cpuidle"
    first = _policy(folder / "cpufreq/policy0")
    thorough = thorough or not any(first == replace(one, cpus="") for one in known.policies)
    return replace(
        known,
        online=files.cpu_list(folder / "online"),
        smt=files.read_text(folder / "smt/control"),
        boost=boost(folder),
        policies=policies(folder / "cpufreq") if thorough else known.policies,
        idle_driver=files.read_text(idle / "current_driver"),
        idle_governor=files.read_text(idle / "current_governor")
        or files.read_text(idle / "current_governor_ro"),
        idle_disabled=disabled_states(folder / "cpu0/cpuidle"),
    )


def first_processor(cpuinfo: str) -> dict[str, str]:
    """The fields of the first block of ``/proc/cpuinfo``."""
    return files.parse_fields(cpuinfo.split("\n\n", 1)[0])


def family(fields: Mapping[str, str]) -> str:
    """``6/143/8`` (family, model, stepping) or ``0x41/0xd4f`` (implementer, part)."""
    for keys in (("cpu family", "model", "stepping"), ("CPU implementer", "CPU part")):
        if keys[0] in fields:
            return "/".join(fields.get(key, "?") for key in keys)
    return ""


def topology(folder: Path, present: str) -> tuple[int | None, int | None]:
    """Cores and sockets, by the ids of every CPU that is online."""
    cores, sockets = set(), set()
    for cpu in cpulist.parse(present):
        place = folder / f"cpu{cpu}/topology"
        socket = files.read_number(place / "physical_package_id")
        core = files.read_number(place / "core_id")
        if socket is None or core is None:
            continue
        die = files.read_number(place / "die_id")
        sockets.add(socket)
        cores.add((socket, die, core))
    return len(cores) or None, len(sockets) or None


def _threads(folder: Path) -> int | None:
    siblings = files.cpu_list(folder / "cpu0/topology/thread_siblings_list")
    return len(cpulist.parse(siblings)) or None


def boost(folder: Path) -> bool | None:
    """Whether clocks above the nominal one are allowed (cpufreq or intel_pstate says)."""
    allowed = files.read_number(folder / "cpufreq/boost")
    if allowed is not None:
        return bool(allowed)
    forbidden = files.read_number(folder / "intel_pstate/no_turbo")
    return None if forbidden is None else not forbidden


def policies(folder: Path) -> tuple[FrequencyPolicy, ...]:
    """The policies, alike ones as one: a host of 224 CPUs mostly has a single kind."""
    alike: dict[FrequencyPolicy, set[int]] = {}
    for number in files.numbered(folder, "policy"):
        place = folder / f"policy{number}"
        cpus = _affected(files.read_text(place / "affected_cpus"))
        alike.setdefault(_policy(place), set()).update(cpus)
    return tuple(replace(policy, cpus=cpulist.render(cpus)) for policy, cpus in alike.items())


def _policy(place: Path) -> FrequencyPolicy:
    return FrequencyPolicy(
        driver=files.read_text(place / "scaling_driver"),
        governor=files.read_text(place / "scaling_governor"),
        preference=files.read_text(place / "energy_performance_preference"),
        lowest=files.read_number(place / "scaling_min_freq"),
        highest=files.read_number(place / "scaling_max_freq"),
        possible=files.read_number(place / "cpuinfo_max_freq"),
    )


def _affected(line: str) -> Iterable[int]:
    return (int(word) for word in line.split() if word.isdecimal())


def disabled_states(folder: Path) -> tuple[str, ...]:
    """Names of the idle states that are switched off."""
    states = (folder / f"state{number}" for number in files.numbered(folder, "state"))
    disabled = (state for state in states if files.read_number(state / "disable"))
    return tuple(files.read_text(state / "name") for state in disabled)


def mitigations(folder: Path) -> dict[str, str]:
    """What is done against each flaw the CPU has; flaws it has not are left out."""
    told = {name: files.read_text(folder / name) for name in files.names(folder)}
    return {name: line[:120] for name, line in told.items() if line and line != "Not affected"}
