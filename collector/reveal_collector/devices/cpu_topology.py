"""The CPUs of a host, and which ones share a core or a package (admin-guide/cputopology.rst)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from reveal_collector.kernel_interfaces.errors import ParseError
from reveal_collector.readers.sysfs_attributes import read_text
from reveal_contract import cpulist

# Larger hosts have aggregated channels instead of one channel for each CPU.
MOST_CPUS = 64


def cpu_list(text: str) -> list[int]:
    """Return the CPUs of a list such as ``0-3,8``, in order.

    Raises ``ParseError`` for other text.
    """
    try:
        return sorted(cpulist.parse(text))
    except ValueError:
        raise ParseError(f"list of CPUs {text[:40]!r} is malformed") from None


def online(sys: Path) -> list[int]:
    """Return the CPUs that are online; raises ``OSError`` where sysfs has no list."""
    return cpu_list((sys / "devices/system/cpu/online").read_text())


def packages(sys: Path, cpus: Iterable[int]) -> dict[int, str]:
    """Return CPU -> package; "0" where it is unknown (Arm without PPTT reports -1)."""
    return {
        cpu: package if (package := _topology_value(sys, cpu)).isdecimal() else "0" for cpu in cpus
    }


def first_threads(sys: Path, cpus: Iterable[int]) -> list[int]:
    """Return one CPU of each core: events of a core would be counted by both threads."""
    known: set[str] = set()
    first = []
    for cpu in cpus:
        siblings = _topology_value(sys, cpu, "thread_siblings_list") or str(cpu)
        if siblings not in known:
            known.add(siblings)
            first.append(cpu)
    return first


def first_of(groups: dict[int, str]) -> dict[str, int]:
    """Return package -> its first CPU."""
    found: dict[str, int] = {}
    for cpu, package in groups.items():
        found.setdefault(package, cpu)
    return found


def _topology_value(sys: Path, cpu: int, name: str = "physical_package_id") -> str:
    return read_text(sys / f"devices/system/cpu/cpu{cpu}/topology" / name)
