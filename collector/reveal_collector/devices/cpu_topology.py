"""Which CPUs there are and which share a core or a package (admin-guide/cputopology.rst)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from reveal_collector.kernel.errors import ParseError
from reveal_collector.readers.sysfs_attributes import read_text
from reveal_contract import cpulist

# On larger hosts CPUs are summed up, not shown one by one.
MOST_CPUS = 64


def cpu_list(text: str) -> list[int]:
    """The CPUs of a list such as ``0-3,8``, in order; raises ``ParseError`` for another text."""
    try:
        return sorted(cpulist.parse(text))
    except ValueError:
        raise ParseError(f"list of CPUs {text[:40]!r} is not one") from None


def online(sys: Path) -> list[int]:
    """The CPUs that are online; raises ``OSError`` where sysfs does not say."""
    return cpu_list((sys / "devices/system/cpu/online").read_text())


def packages(sys: Path, cpus: Iterable[int]) -> dict[int, str]:
    """CPU -> its package; "0" where the kernel does not tell (Arm without PPTT says -1)."""
    return {cpu: package if (package := _said(sys, cpu)).isdecimal() else "0" for cpu in cpus}


def first_threads(sys: Path, cpus: Iterable[int]) -> list[int]:
    """One CPU of each core: what cores count would be summed twice over both threads."""
    seen: set[str] = set()
    first = []
    for cpu in cpus:
        siblings = _said(sys, cpu, "thread_siblings_list") or str(cpu)
        if siblings not in seen:
            seen.add(siblings)
            first.append(cpu)
    return first


def first_of(groups: dict[int, str]) -> dict[str, int]:
    """Package -> its first CPU."""
    found: dict[str, int] = {}
    for cpu, package in groups.items():
        found.setdefault(package, cpu)
    return found


def _said(sys: Path, cpu: int, name: str = "physical_package_id") -> str:
    return read_text(sys / f"devices/system/cpu/cpu{cpu}/topology" / name)
