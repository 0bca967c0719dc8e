"""Names of kernel counters, from the recorded host: what a made-up one of another age shows."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

RECORDED = Path(__file__).parents[2] / "fixtures/hosts/vm-2cpu"
# keys of vmstat younger than the oldest kernel of a made-up host, by the release that has them
_SINCE = {
    (5, 8): ("workingset_refault_anon", "pgscan_anon", "pgsteal_anon", "pgscan_file",
             "pgsteal_file", "workingset_activate_anon", "workingset_restore_anon", "thp_migration",
             "pgreuse"),
    (5, 15): ("pgdemote_", "nr_swapcached"),
    (6, 1): ("pgscan_khugepaged", "pgsteal_khugepaged", "pgpromote_", "nr_throttled_written",
             "thp_scan_exceed", "zswpwb", "nr_sec_page_table_pages"),
    (6, 10): ("nr_iommu_pages", "nr_memmap", "pgscan_proactive", "pgsteal_proactive",
              "pgpromote_candidate_nrl", "pgdemote_proactive", "swpin_zero", "swpout_zero",
              "nr_free_pages_blocks", "nr_balloon_pages", "nr_kernel_file_pages", "nr_hugetlb",
              "balloon_", "thp_underused"),
}  # fmt: skip


def vmstat_keys(kernel: tuple[int, int]) -> list[str]:
    """The keys of ``/proc/vmstat`` of about that release, in its order."""
    tokens = (RECORDED / "proc/vmstat").read_text().split()
    young = tuple(
        name for since, names in _SINCE.items() if kernel < since
        for name in names
    )  # fmt: skip
    return [key for key in tokens[::2] if not key.startswith(young)]


@cache
def protocols(file: str) -> dict[str, tuple[str, ...]]:
    """``netstat`` or ``snmp``: the protocols and the names of their counters."""
    lines = (RECORDED / "proc/1/net" / file).read_text().splitlines()
    return {
        tokens[0].rstrip(":"): tuple(tokens[1:]) for tokens in (line.split() for line in lines[::2])
    }


def snmp6_names() -> Iterator[str]:
    for line in (RECORDED / "proc/1/net/snmp6").read_text().splitlines():
        yield line.split()[0]
