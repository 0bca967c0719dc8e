"""The subsystem of a metric by its name: from the catalogue, a tool's names, or the words in it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from reveal_contract import catalogue
from reveal_contract.metric import Subsystem
from reveal_contract.search import known_names

_LABELS = re.compile(r"\{.*\}(__\w+)?\Z")
_CASE = re.compile(r"(?<=[a-z])(?=[A-Z])")
_TOKEN = re.compile(r"[a-z]+")
_NOT_WORD = re.compile(r"[^a-z0-9]")
_LONG = 8  # letters; a shorter word of a field name is ambiguous

# these words decide wherever they are in a name: memory of a GPU is the GPU's, and waiting for
# I/O is storage, although a CPU counter reports it
_DECISIVE = {
    "gpu": Subsystem.GPU, "nvml": Subsystem.GPU, "dcgm": Subsystem.GPU, "cuda": Subsystem.GPU,
    "nvlink": Subsystem.GPU, "xid": Subsystem.GPU, "vram": Subsystem.GPU, "amdgpu": Subsystem.GPU,
    "nvidia": Subsystem.GPU, "rocm": Subsystem.GPU, "hbm": Subsystem.GPU,
    "iowait": Subsystem.STORAGE, "softirq": Subsystem.NETWORK, "softirqs": Subsystem.NETWORK,
}  # fmt: skip

_WORDS = {
    Subsystem.CPU: """cpu cpus load loadavg ldavg core cores proc procs process processes task
        tasks thread threads sched schedstat runq running forks fork ctxt cswch context switches
        irq irqs intr interrupt interrupts steal idle user usr sys system nice freq frequency mhz
        clock cycles instructions ipc thermal throttle""",
    Subsystem.MEMORY: """mem memory ram swap swpd si so page pages paging pgfault pgmajfault
        pgpgin pgpgout pswpin pswpout fault faults majflt minflt oom numa hugepage hugepages
        hugetlb thp dirty writeback slab cached cache buffers buff anon rss shmem vm vmstat
        kswapd compaction memavailable memfree memtotal""",
    Subsystem.NETWORK: """net network nic eth ens enp eno wlan bond ib rdma roce mlx infiniband
        tcp udp icmp ip ipv ipext tcpext socket sockets sock sockstat conntrack rx tx recv received
        receive transmit transmitted sent send packet packets pkt pkts retrans retransmit
        retransmits retransegs segs syn established netstat softnet bandwidth dns http
        opens estab rsts listen overflows errs""",
    Subsystem.STORAGE: """disk disks diskio dsk io iops blk block blkio storage nvme sda sdb sdc
        sdd vda vdb xvda dm md raid fs filesystem inode inodes read reads write writes written
        await svctm iostat nfs lustre gpfs blocked scsi""",
}  # fmt: skip
_BY_WORD = {word: area for area, words in _WORDS.items() for word in words.split()}


def subsystem_of(name: str) -> Subsystem | None:
    """Return the subsystem of a metric, or ``None`` if its name does not show one.

    Names of the catalogue and of known tools come first; then the words of the name, from left to
    right.
    """
    bare = _LABELS.sub("", name.strip())
    tables = ((bare.casefold(), _by_field_name()), (_plain(bare), _by_field_word()))
    known = (table[key] for key, table in tables if key in table)
    return _by_catalogue(bare) or next(known, None) or _by_words(bare)


def _by_catalogue(name: str) -> Subsystem | None:
    try:
        return catalogue.find(name.partition("__")[0]).subsystem
    except catalogue.UnknownMetricError:
        return None


@cache
def _by_field_name() -> dict[str, Subsystem]:
    return _unambiguous(
        (name.casefold(), row.subsystem) for row in catalogue.rows() for name in known_names(row)
    )


@cache
def _by_field_word() -> dict[str, Subsystem]:
    """Return field names without their file: ``ActiveOpens`` of ``snmp Tcp ActiveOpens``."""
    return _unambiguous(
        (_plain(word), row.subsystem)
        for row in catalogue.rows()
        for name in known_names(row)
        for word in name.split()
        if len(_plain(word)) >= _LONG
    )


def _unambiguous(pairs: Iterable[tuple[str, Subsystem]]) -> dict[str, Subsystem]:
    """Return the names that belong to exactly one subsystem."""
    found: dict[str, set[Subsystem]] = {}
    for name, area in pairs:
        found.setdefault(name, set()).add(area)
    return {name: next(iter(areas)) for name, areas in found.items() if len(areas) == 1}


def _plain(name: str) -> str:
    return _NOT_WORD.sub("", name.casefold())


def _by_words(name: str) -> Subsystem | None:
    tokens = _TOKEN.findall(_CASE.sub(" ", name).lower())
    decisive = (_DECISIVE[token] for token in tokens if token in _DECISIVE)
    plain = (_BY_WORD[token] for token in tokens if token in _BY_WORD)
    return next(decisive, None) or next(plain, None)
