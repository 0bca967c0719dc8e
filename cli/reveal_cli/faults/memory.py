"""Faults of memory: page faults, locked and reserved pages, reclaim, swapping, OOM kills."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from reveal_cli.faults.base import (
    Culprit,
    Fault,
    FaultError,
    FaultTarget,
    Injection,
    Needs,
    program,
    stress,
)
from reveal_cli.faults.disk import data_file, no_disk
from reveal_cli.faults.ledger import Undo
from reveal_cli.faults.link import run
from reveal_contract.metric import Subsystem

_MEMORY = frozenset({Subsystem.MEMORY})
_MIB = 1 << 20
_HUGEPAGES = "/proc/sys/vm/nr_hugepages"
_ZRAM = Path("/sys/class/zram-control")
_AVAILABLE_SHARE = 3  # a fault uses at most a third of the available memory


def _limited(size: int, name: str, *arguments: object) -> Callable[[Injection], None]:
    """Return an injection that runs a program in a cgroup with ``size`` bytes."""

    def inject(injection: Injection) -> None:
        _limit(injection, size)
        injection.program(name, *arguments)

    return inject


def _limit(injection: Injection, size: int) -> None:
    if injection.group is None:
        raise FaultError("a memory limit needs a cgroup")
    injection.group.limit_memory(size)


def _thrash(injection: Injection) -> None:
    _limit(injection, 128 * _MIB)
    injection.program("reread", data_file(injection.target.scratch))


def _reserve(size: Callable[[], int]) -> Callable[[Injection], None]:
    """Return an injection that reserves so many bytes as huge pages of the default size."""

    def inject(injection: Injection) -> None:
        pages = int(Path(_HUGEPAGES).read_text()) + -(-size() // _meminfo("Hugepagesize:"))
        injection.write(_HUGEPAGES, pages)
        reserved = int(Path(_HUGEPAGES).read_text())
        if reserved < pages:  # the kernel reserves what it finds, and reports no error
            raise FaultError(f"the kernel reserved {reserved} of {pages} huge pages")

    return inject


def _large_pool() -> int:
    """Return 5 % of the memory, at least 1 GiB: as much on a large host as on a small one."""
    return max(1024 * _MIB, _meminfo("MemTotal:") // 20)


def _zram(injection: Injection) -> None:
    """Use a compressed RAM disk as swap (kernel docs, ``blockdev/zram.rst``), and fill it."""
    number = (_ZRAM / "hot_add").read_text().strip()
    device = f"zram{number}"
    injection.ledger.add(Undo("write", (str(_ZRAM / "hot_remove"), number)))
    injection.ledger.add(Undo("write", (f"/sys/block/{device}/reset", "1")))
    Path(f"/sys/block/{device}/disksize").write_text(str(512 * _MIB))
    run("mkswap", f"/dev/{device}")
    injection.ledger.add(Undo("command", ("swapoff", f"/dev/{device}")))
    run("swapon", f"/dev/{device}")
    _limit(injection, 128 * _MIB)
    injection.program("cycle", 200 * _MIB)


def _meminfo(key: str) -> int:
    """Return a number of /proc/meminfo in bytes."""
    rows = (row.split() for row in Path("/proc/meminfo").read_text().splitlines())
    return next(int(row[1]) * 1024 for row in rows if row[0] == key)


def _missing(size: int) -> str:
    """Return why memory does not suffice for a fault of this size, or nothing."""
    if _meminfo("MemAvailable:") // _AVAILABLE_SHARE >= size:
        return ""
    return f"needs {_AVAILABLE_SHARE * size // _MIB} MiB of available memory"


def _available_for(size: int) -> Callable[[FaultTarget], str]:
    return lambda _: _missing(size)


def _no_large_pool(_: FaultTarget) -> str:
    return _missing(_large_pool())


def _lock_root(size: int) -> Needs:
    return Needs(root=True, check=_available_for(size))


def _on_disk(target: FaultTarget) -> str:
    return no_disk(target.scratch)


def _data(target: FaultTarget) -> object:
    return data_file(target.scratch)


_CGROUP = Needs(root=True, controllers=("memory",))
_SMALL = 64 * _MIB

FAULTS: tuple[Fault, ...] = (
    Fault(
        "page_faults", "page-fault storm", _MEMORY | {Subsystem.CPU},
        "two processes that map and free fresh pages", program("page_faults", 2, _SMALL),
    ),
    Fault(
        "tlb_shootdown", "TLB shootdowns", _MEMORY | {Subsystem.CPU},
        "page tables changed under threads on all CPUs", stress("--tlb-shootdown", "2"),
        needs=Needs(binaries=("stress-ng",)),
    ),
    Fault(
        "mlock", "locked memory", _MEMORY, "1 GiB locked", program("lock", 1024 * _MIB),
        needs=_lock_root(1024 * _MIB),
    ),
    Fault(
        "mlock_weak", "locked memory", _MEMORY, "128 MiB locked", program("lock", 128 * _MIB),
        weak=True, needs=_lock_root(128 * _MIB),
    ),
    Fault(
        "hugepages", "hugepages reserved", _MEMORY,
        "5 % of the memory, at least 1 GiB, reserved as huge pages and unused",
        _reserve(_large_pool),
        needs=Needs(root=True, files=(_HUGEPAGES,), check=_no_large_pool),
        culprit=Culprit.NOBODY,
    ),
    Fault(
        "hugepages_weak", "hugepages reserved", _MEMORY, "64 MiB reserved as huge pages and unused",
        _reserve(lambda: _SMALL), weak=True, needs=Needs(root=True, files=(_HUGEPAGES,)),
        culprit=Culprit.NOBODY,
    ),
    Fault(
        "memcg_thrash", "page cache thrash", _MEMORY | {Subsystem.STORAGE},
        "a container of 128 MiB that reads 512 MiB repeatedly", _thrash,
        needs=Needs(root=True, controllers=("memory",), check=_on_disk),
        prepare=_data,
    ),
    Fault(
        "oom_kill", "OOM kills", _MEMORY, "a container of 64 MiB whose processes need 200 MiB",
        _limited(_SMALL, "oom", 200 * _MIB), needs=_CGROUP,
    ),
    Fault(
        "zram_swap", "swapping", _MEMORY, "a container of 128 MiB that uses 200 MiB, swap on zram",
        _zram, needs=Needs(root=True, binaries=("mkswap", "swapon"), controllers=("memory",),
                           files=(str(_ZRAM),)),
    ),
    Fault(
        "leak", "memory leak", _MEMORY, "80 MB a second, up to 2 GiB",
        program("leak", 80_000_000, 2048 * _MIB), needs=Needs(check=_available_for(2048 * _MIB)),
    ),
    Fault(
        "leak_weak", "memory leak", _MEMORY, "20 MB a second, up to 512 MiB",
        program("leak", 20_000_000, 512 * _MIB), weak=True,
        needs=Needs(check=_available_for(512 * _MIB)),
    ),
)  # fmt: skip
