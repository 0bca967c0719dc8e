"""Constants of the host whose files are read: its page size, clock tick and memory.

Files of a recorded host are often read on another one, whose constants may differ: a page has 4 KiB
on x86 and up to 64 KiB on Arm and POWER.  So ``sysconf`` counts only where the files are those
of the running kernel.
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from typing import NamedTuple

from reveal_collector.readers.source import Roots
from reveal_collector.readers.sysfs_attributes import parse_fields, read_text

_DEFAULT_PAGE = 4096
_SMALLEST_PAGE_SHIFT, _LARGEST_PAGE_SHIFT = 12, 18
# the same level in kB in meminfo and in pages in vmstat
_PAIRS = (
    ("MemFree", "nr_free_pages"), ("AnonPages", "nr_anon_pages"), ("Mapped", "nr_mapped"),
    ("Shmem", "nr_shmem"), ("PageTables", "nr_page_table_pages"),
    ("Active(file)", "nr_active_file"), ("Inactive(file)", "nr_inactive_file"),
)  # fmt: skip
# The two files were read one after the other: how far the quotient may be from a power of two.
_TOLERANCE = 0.25
# USER_HZ is part of the ABI of an architecture (asm-generic/param.h); these have another one.
_USER_HZ, _ALPHA_HZ = 100, 1024
_ALPHA = re.compile(r"(cpu\s*:\s*Alpha|arch\s*:\s*IA-64)", re.MULTILINE)


class HostConstants(NamedTuple):
    """The constants: bytes of a page, clock ticks of a second, bytes of memory.

    ``memory`` is infinite where it is unknown: then no use of memory is a large share of it.
    ``assumed`` has a phrase for each constant that the files do not show.
    """

    page: int
    ticks_per_second: int
    memory: float
    assumed: tuple[str, ...] = ()


def host_constants(roots: Roots) -> HostConstants:
    """Return the constants of the host under these roots."""
    page, memory = page_size(roots), memory_size(roots)
    unknown = (
        "the page size of the recorded host is unknown: pages of 4 KiB are assumed",
        "the memory size of the recorded host is unknown: process groups are chosen without it",
    )
    known = (page is not None, memory is not None)
    return HostConstants(
        page or _DEFAULT_PAGE,
        ticks_per_second(roots),
        memory or math.inf,
        tuple(phrase for phrase, is_known in zip(unknown, known, strict=True) if not is_known),
    )


def page_size(roots: Roots) -> int | None:
    """Return the bytes of a page; None where the files of a recorded host do not show them."""
    if roots.live:
        return os.sysconf("SC_PAGE_SIZE")
    levels = _meminfo(roots)
    lines = read_text(roots.proc / "vmstat").splitlines()
    pages = dict(line.split(" ", 1) for line in lines if " " in line)
    shifts = (_page_shift(levels.get(level, 0), pages.get(count, "")) for level, count in _PAIRS)
    found = Counter(shift for shift in shifts if shift is not None).most_common(1)
    return 1 << found[0][0] if found else None


def ticks_per_second(roots: Roots) -> int:
    """Return the clock ticks of a second in which the kernel reports CPU time."""
    if roots.live:
        return os.sysconf("SC_CLK_TCK")
    return _ALPHA_HZ if _ALPHA.search(read_text(roots.proc / "cpuinfo")) else _USER_HZ


def memory_size(roots: Roots) -> int | None:
    """Return the bytes of memory; None where the files of a recorded host do not show them."""
    if roots.live:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return _meminfo(roots).get("MemTotal")


def huge_page_order(roots: Roots, page: int) -> int:
    """Return the order of the default huge page: 9 for 2 MiB in pages of 4 KiB.

    Without one it is that of a page table's page, which transparent huge pages fill.
    """
    pages = _meminfo(roots).get("Hugepagesize", 0) // page
    return pages.bit_length() - 1 if pages > 1 else table_order(page)


def table_order(page: int) -> int:
    """Return the order of the memory that one page of 8-byte page table entries maps."""
    return (page // 8).bit_length() - 1


def _meminfo(roots: Roots) -> dict[str, int]:
    """Return the sizes in meminfo, in bytes; counts of huge pages have another unit."""
    fields = parse_fields(read_text(roots.proc / "meminfo"))
    sizes = {name: text.removesuffix(" kB") for name, text in fields.items()}
    return {name: int(size) * 1024 for name, size in sizes.items() if size.isdecimal()}


def _page_shift(level: int, pages: str) -> int | None:
    """Return the bits of a page in whose units a level of so many bytes is so many pages."""
    if not (level and pages.isdecimal() and int(pages)):
        return None
    exact = math.log2(level / int(pages))
    shift = round(exact)
    fits = abs(exact - shift) <= _TOLERANCE and _SMALLEST_PAGE_SHIFT <= shift <= _LARGEST_PAGE_SHIFT
    return shift if fits else None
