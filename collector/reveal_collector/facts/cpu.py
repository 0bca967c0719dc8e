"""Processors: model, topology, clocks, idle states, mitigations.

Kernel: admin-guide/cputopology.rst, admin-guide/pm/{cpufreq,cpuidle,intel_pstate}.rst,
admin-guide/hw-vuln; /proc/cpuinfo in the format of each architecture.
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
_KHZ = 1000.0


def identity(roots: Roots) -> Cpu:
    """Return the facts that do not change while the host runs: the model and its topology."""
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
    """Return ``known`` with what an operator can change: CPUs online, clocks, idle states.

    Without ``thorough``, all policies are assumed unchanged while the first one is: each has half a
    dozen files for every CPU, and operators change all policies together.
    """
    folder = roots.sys / "devices/system/cpu"
    idle = folder / "cpuidle"
    first = _policy(folder / "cpufreq/policy0")
    thorough = thorough or not any(first == replace(policy, cpus="") for policy in known.policies)
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
    """Return the fields of the first block of ``/proc/cpuinfo``."""
    return files.parse_fields(cpuinfo.split("\n\n", 1)[0])


def family(fields: Mapping[str, str]) -> str:
    """Return ``6/143/8`` (family, model, stepping) or ``0x41/0xd4f`` (implementer, part)."""
    for keys in (("cpu family", "model", "stepping"), ("CPU implementer", "CPU part")):
        if keys[0] in fields:
            return "/".join(fields.get(key, "?") for key in keys)
    return ""


def topology(folder: Path, present: str) -> tuple[int | None, int | None]:
    """Return the numbers of cores and sockets, from the ids of all online CPUs."""
    cores, sockets = set(), set()
    for cpu in cpulist.parse(present):
        path = folder / f"cpu{cpu}/topology"
        socket = files.read_number(path / "physical_package_id")
        core = files.read_number(path / "core_id")
        if socket is None or core is None:
            continue
        die = files.read_number(path / "die_id")
        sockets.add(socket)
        cores.add((socket, die, core))
    return len(cores) or None, len(sockets) or None


def _threads(folder: Path) -> int | None:
    siblings = files.cpu_list(folder / "cpu0/topology/thread_siblings_list")
    return len(cpulist.parse(siblings)) or None


def boost(folder: Path) -> bool | None:
    """Return whether clocks above the nominal one are allowed (from cpufreq or intel_pstate)."""
    allowed = files.read_number(folder / "cpufreq/boost")
    if allowed is not None:
        return bool(allowed)
    forbidden = files.read_number(folder / "intel_pstate/no_turbo")
    return None if forbidden is None else not forbidden


def policies(folder: Path) -> tuple[FrequencyPolicy, ...]:
    """Return the policies; equal ones are combined, as most hosts have a single kind."""
    alike: dict[FrequencyPolicy, set[int]] = {}
    for number in files.numbered(folder, "policy"):
        path = folder / f"policy{number}"
        cpus = _affected(files.read_text(path / "affected_cpus"))
        alike.setdefault(_policy(path), set()).update(cpus)
    return tuple(replace(policy, cpus=cpulist.render(cpus)) for policy, cpus in alike.items())


def _policy(path: Path) -> FrequencyPolicy:
    return FrequencyPolicy(
        driver=files.read_text(path / "scaling_driver"),
        governor=files.read_text(path / "scaling_governor"),
        preference=files.read_text(path / "energy_performance_preference"),
        lowest=files.read_level(path / "scaling_min_freq", "cpu.frequency", _KHZ),
        highest=files.read_level(path / "scaling_max_freq", "cpu.frequency", _KHZ),
        possible=files.read_level(path / "cpuinfo_max_freq", "cpu.frequency", _KHZ),
    )


def _affected(line: str) -> Iterable[int]:
    return (int(word) for word in line.split() if word.isdecimal())


def disabled_states(folder: Path) -> tuple[str, ...]:
    """Return the names of the disabled idle states."""
    states = (folder / f"state{number}" for number in files.numbered(folder, "state"))
    disabled = (state for state in states if files.read_number(state / "disable"))
    return tuple(files.read_text(state / "name") for state in disabled)


def mitigations(folder: Path) -> dict[str, str]:
    """Return the mitigation of each vulnerability that the CPU has."""
    lines = {name: files.read_text(folder / name) for name in files.names(folder)}
    return {name: line[:120] for name, line in lines.items() if line and line != "Not affected"}
