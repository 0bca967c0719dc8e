"""PMUs in sysfs: what can be counted and how it is spelled (sysfs-bus-event_source-devices)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from support.hosts.machine import Machine, ranges
from support.hosts.tree import Tree

_DEVICES = "sys/bus/event_source/devices"
_X86 = {
    "event": "config:0-7", "umask": "config:8-15", "edge": "config:18", "inv": "config:23",
    "cmask": "config:24-31",
}  # fmt: skip
_AMD = {**_X86, "event": "config:0-7,32-35"}
_UNCORE = {"event": "config:0-7", "umask": "config:8-15", "edge": "config:18"}
_LINES = {"scale": "6.103515625e-5", "unit": "MiB"}


@dataclass(frozen=True)
class Pmu:
    """A PMU; ``events`` name -> terms, ``notes`` "event.scale" or "event.unit" -> text."""

    name: str
    type: int
    formats: Mapping[str, str] = field(default_factory=lambda: {"event": "config:0-63"})
    events: Mapping[str, str] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    cpumask: Sequence[int] = ()
    cpus: Sequence[int] = ()


def add_pmu(tree: Tree, pmu: Pmu) -> None:
    folder = f"sys/devices/{pmu.name}"
    tree.write(f"{folder}/type", pmu.type)
    for name, bits in pmu.formats.items():
        tree.write(f"{folder}/format/{name}", f"{bits}\n")
    for name, text in (*pmu.events.items(), *pmu.notes.items()):
        tree.write(f"{folder}/events/{name}", f"{text}\n")
    for name, cpus in (("cpumask", pmu.cpumask), ("cpus", pmu.cpus)):
        if cpus:
            tree.write(f"{folder}/{name}", f"{ranges(cpus)}\n")
    tree.link(f"{_DEVICES}/{pmu.name}", f"../../../devices/{pmu.name}")


def add_kernel_pmus(tree: Tree) -> None:
    """What every kernel has."""
    for name, kind in (("software", 1), ("tracepoint", 2), ("breakpoint", 5)):
        add_pmu(tree, Pmu(name, kind, {}))


def add_msr_pmu(tree: Tree, events: Sequence[str] = ("tsc", "aperf", "mperf", "smi")) -> None:
    numbers = {"tsc": 0, "aperf": 1, "mperf": 2, "pperf": 3, "smi": 4, "ptsc": 5, "irperf": 6}
    named = {name: f"event={numbers[name]:#04x}" for name in events}
    add_pmu(tree, Pmu("msr", 9, events=named))


def add_power_pmu(tree: Tree, machine: Machine, parts: Sequence[str] = ("pkg", "ram")) -> None:
    numbers = {"cores": 1, "pkg": 2, "ram": 3, "gpu": 4, "psys": 5}
    notes = {}
    for part in parts:
        notes[f"energy-{part}.scale"] = "2.3283064365386962890625e-10"
        notes[f"energy-{part}.unit"] = "Joules"
    named = {f"energy-{part}": f"event={numbers[part]:#04x}" for part in parts}
    formats = {"event": "config:0-7"}
    add_pmu(tree, Pmu("power", 10, formats, named, notes, firsts(machine)))


def add_cstate_pmus(tree: Tree, machine: Machine) -> None:
    core = {"c1-residency": "event=0x00", "c6-residency": "event=0x02"}
    package = {"c2-residency": "event=0x00", "c6-residency": "event=0x02"}
    add_pmu(tree, Pmu("cstate_core", 11, events=core, cpumask=range(machine.cores)))
    add_pmu(tree, Pmu("cstate_pkg", 12, events=package, cpumask=firsts(machine)))


def add_intel_pmus(tree: Tree, machine: Machine, channels: int = 8, named: bool = False) -> None:
    """A server's; only kernels for CPUs before Sapphire Rapids name the controllers' events."""
    add_kernel_pmus(tree)
    events = {"cpu-cycles": "event=0x3c", "instructions": "event=0xc0"}
    add_pmu(tree, Pmu("cpu", 4, _X86, events))
    add_msr_pmu(tree)
    add_power_pmu(tree, machine)
    add_cstate_pmus(tree, machine)
    counted, notes = {}, {}
    if named:
        counted = {"cas_count_read": "event=0x04,umask=0x03",
                   "cas_count_write": "event=0x04,umask=0x0c"}  # fmt: skip
        notes = {f"{name}.{key}": text for name in counted for key, text in _LINES.items()}
    for channel in range(channels):
        add_pmu(tree, Pmu(f"uncore_imc_{channel}", 20 + channel, _UNCORE, counted, notes,
                          firsts(machine)))  # fmt: skip


def add_hybrid_pmus(tree: Tree, big: int, small: int) -> None:
    """A desktop's CPUs of two kinds; the first ``big`` are performance cores' threads."""
    add_kernel_pmus(tree)
    add_pmu(tree, Pmu("cpu_core", 4, _X86, cpus=range(big)))
    add_pmu(tree, Pmu("cpu_atom", 10, _X86, cpus=range(big, big + small)))
    add_msr_pmu(tree)


def add_amd_pmus(tree: Tree, machine: Machine, controllers: int = 12) -> None:
    """Without ``controllers`` as on Zen 2 and 3, where the data fabric counts for them."""
    add_kernel_pmus(tree)
    add_pmu(tree, Pmu("cpu", 4, _AMD, {"cpu-cycles": "event=0x76"}))
    add_msr_pmu(tree, ("tsc", "aperf", "mperf", "irperf"))
    add_power_pmu(tree, machine, ("pkg",))
    fabric = {"event": "config:0-7,32-35,59-60", "umask": "config:8-15"}
    add_pmu(tree, Pmu("amd_df", 15, fabric, cpumask=firsts(machine)))
    for index in range(controllers):
        formats = {"event": "config:0-7", "rdwrmask": "config:8-9"}
        add_pmu(tree, Pmu(f"amd_umc_{index}", 30 + index, formats, cpumask=firsts(machine)))


def add_arm_pmus(tree: Tree, machine: Machine, fabric: bool = True) -> None:
    """``fabric``: with NVIDIA's PMU of the memory behind the system cache, one a socket."""
    add_kernel_pmus(tree)
    formats = {"event": "config:0-15", "long": "config1:0"}
    add_pmu(tree, Pmu("armv8_pmuv3_0", 8, formats, cpus=range(machine.cpus)))
    counted = {"cmem_rd_data": "event=0x1a5", "cmem_wr_total_bytes": "event=0x1db"}
    for socket in range(machine.sockets if fabric else 0):
        add_pmu(tree, Pmu(f"nvidia_scf_pmu_{socket}", 20 + socket, {"event": "config:0-31"},
                          counted, cpumask=firsts(machine)[socket : socket + 1]))  # fmt: skip


def firsts(machine: Machine) -> list[int]:
    """The first CPU of each socket."""
    return [
        next(cpu for cpu in range(machine.cpus) if machine.socket(cpu) == socket)
        for socket in range(machine.sockets)
    ]
