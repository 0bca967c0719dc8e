"""/proc/cpuinfo of x86 and Arm, as far as it tells which CPU this is (arch/*/kernel/*cpuinfo*)."""

from __future__ import annotations

from dataclasses import dataclass

from support.hosts.machine import Machine
from support.hosts.tree import Tree


@dataclass(frozen=True)
class X86:
    vendor: str
    family: int
    model: int
    name: str


@dataclass(frozen=True)
class Arm:
    implementer: int
    part: int


SKYLAKE_SP = X86("GenuineIntel", 6, 0x55, "Intel(R) Xeon(R) Platinum 8168 CPU @ 2.70GHz")
SAPPHIRE_RAPIDS = X86("GenuineIntel", 6, 0x8F, "Intel(R) Xeon(R) Platinum 8480C")
ALDER_LAKE = X86("GenuineIntel", 6, 0x97, "12th Gen Intel(R) Core(TM) i9-12900K")
ROME = X86("AuthenticAMD", 0x17, 0x31, "AMD EPYC 7742 64-Core Processor")
MILAN = X86("AuthenticAMD", 0x19, 0x01, "AMD EPYC 7763 64-Core Processor")
GENOA = X86("AuthenticAMD", 0x19, 0x11, "AMD EPYC 9654 96-Core Processor")
TURIN = X86("AuthenticAMD", 0x1A, 0x02, "AMD EPYC 9755 128-Core Processor")
NEOVERSE_N1 = Arm(0x41, 0xD0C)
NEOVERSE_V2 = Arm(0x41, 0xD4F)
AMPEREONE = Arm(0xC0, 0xAC3)


def add_cpuinfo(tree: Tree, machine: Machine, model: X86 | Arm) -> None:
    blocks = [
        _x86(machine, cpu, model) if isinstance(model, X86) else _arm(cpu, model)
        for cpu in range(machine.cpus)
    ]
    tree.write("proc/cpuinfo", "\n\n".join(blocks) + "\n\n")


def _x86(machine: Machine, cpu: int, model: X86) -> str:
    return "\n".join(
        (
            f"processor\t: {cpu}",
            f"vendor_id\t: {model.vendor}",
            f"cpu family\t: {model.family}",
            f"model\t\t: {model.model}",
            f"model name\t: {model.name}",
            "stepping\t: 1",
            "cpu MHz\t\t: 2000.000",
            f"physical id\t: {machine.socket(cpu)}",
            f"core id\t\t: {machine.core(cpu) % (machine.cores // machine.sockets)}",
            "flags\t\t: fpu vme de pse tsc msr constant_tsc nonstop_tsc aperfmperf",
            "power management:",
        )
    )


def _arm(cpu: int, model: Arm) -> str:
    return "\n".join(
        (
            f"processor\t: {cpu}",
            "BogoMIPS\t: 2000.00",
            "Features\t: fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics",
            f"CPU implementer\t: {model.implementer:#x}",
            "CPU architecture: 8",
            "CPU variant\t: 0x0",
            f"CPU part\t: {model.part:#x}",
            "CPU revision\t: 0",
        )
    )
