"""What the subjects of the ledger are entitled to: weights, quotas and cpusets, as configured.

Kernel documents: admin-guide/cgroup-v2.rst (cpu, cpuset), scheduler/sched-design-CFS.rst,
scheduler/sched-bwc.rst, admin-guide/cgroup-v1/cpusets.rst; sched(7) for autogroups.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from reveal_collector.ledger.programs import KEY_GROUP
from reveal_collector.ledger.slots import Slot
from reveal_collector.readers.sysfs_attributes import read_text
from reveal_collector.subjects.cgroup_files import UNIFIED
from reveal_contract.cpu_shares import DEFAULT_WEIGHT, CpuGroup, CpuMember, CpuShares

REREAD_S = 10.0  # weights seldom change while their cgroup exists
_NICE_STEP = 1.25  # of the weight: 10 % of a CPU (kernel: sched_prio_to_weight)
_IDLE_WEIGHT = 3.0  # of SCHED_IDLE and of cpu.idle
_SCHED_IDLE = 5
_V2_DEFAULT = 100
_NUMBER = (1 << 32) - 1
_Chain = tuple[CpuGroup, ...]  # from the root downward


class ShareReader:
    """Reads the shares of subjects when they are new, and of all every ten seconds.

    ``shares`` is replaced as a whole, so that another thread may read it.
    """

    def __init__(self, trees: Mapping[str, Path], proc: Path) -> None:
        self._cgroups, self._processes = CgroupShares(trees), ProcessShares(proc)
        self._known: dict[str, tuple[CpuMember, _Chain]] = {}
        self._read_s = 0.0

    def update(self, slots: Iterable[Slot], paths: Mapping[str, str], now: float) -> None:
        """Read what is due: of the subjects of these slots; ``paths`` are those of cgroups."""
        known = self._known
        if now - self._read_s >= REREAD_S:
            known, self._read_s = {}, now
        self._known = {slot.name: known.get(slot.name) or self._read(slot, paths) for slot in slots}

    def of(self, names: Iterable[str]) -> CpuShares:
        """Return the shares of these subjects, each group once and after its parent."""
        known = self._known
        found = [known[name] for name in sorted(names) if name in known]
        groups = {group.path: group for _, chain in found for group in chain}
        return CpuShares(tuple(groups.values()), tuple(member for member, _ in found))

    def _read(self, slot: Slot, paths: Mapping[str, str]) -> tuple[CpuMember, _Chain]:
        path = paths.get(slot.name)
        if path is not None:
            return self._cgroups.read(slot.name, path)
        return self._processes.read(slot.name, slot.keys)


class CgroupShares:
    """Shares of cgroups, of version 1 or 2."""

    def __init__(self, trees: Mapping[str, Path]) -> None:
        self._tree = trees.get("cpu") or trees.get(UNIFIED)
        self._read_group = _group_v1 if "cpu" in trees else _group_v2
        self._sets = trees.get("cpuset") or trees.get(UNIFIED)

    def read(self, name: str, path: str) -> tuple[CpuMember, _Chain]:
        """Return the member and its groups; levels without the controller are no groups."""
        chain: list[CpuGroup] = []
        for level in _levels(path):
            group = self._read_group(self._tree / level[1:], level) if self._tree else None
            if group is not None:
                chain.append(replace(group, parent=chain[-1].path if chain else ""))
        home = chain[-1].path if chain else ""
        return CpuMember(name, home, cpus=self._cpus(path)), tuple(chain)

    def _cpus(self, path: str) -> str:
        """Return the CPUs of the nearest cpuset; "" for those of the root."""
        if self._sets is None:
            return ""
        everything = _effective(self._sets)
        for level in reversed([*_levels(path)]):
            if found := _effective(self._sets / level[1:]):
                return "" if found == everything else found
        return ""


class ProcessShares:
    """Shares of process groups and sessions, by the nice values of their leaders."""

    def __init__(self, proc: Path) -> None:
        self._proc = proc
        self._has_autogroups = read_text(proc / "sys/kernel/sched_autogroup_enabled") == "1"

    def read(self, name: str, keys: Iterable[int]) -> tuple[CpuMember, _Chain]:
        """Return the member and its autogroup; all is default where the leader has ended."""
        leader = next((key & _NUMBER for key in keys if key >= KEY_GROUP), 0)
        folder = self._proc / str(leader)
        group = _autogroup(read_text(folder / "autogroup")) if self._has_autogroups else None
        weight = _thread_weight(read_text(folder / "stat"))
        if group is None:
            return CpuMember(name, weight=weight), ()
        return CpuMember(name, group.path, weight), (group,)


def nice_weight(nice: int) -> float:
    """Return the weight of a nice value: each step is worth about 10 % of a CPU."""
    return round(DEFAULT_WEIGHT / _NICE_STEP**nice, 1)


def _levels(path: str) -> Iterator[str]:
    """Yield ``/a``, ``/a/b`` for ``/a/b``."""
    parts = [part for part in path.split("/") if part]
    for count in range(1, len(parts) + 1):
        yield "/" + "/".join(parts[:count])


def _group_v1(folder: Path, path: str) -> CpuGroup | None:
    weight = _number(read_text(folder / "cpu.shares"))
    if weight is None:
        return None
    quota = _number(read_text(folder / "cpu.cfs_quota_us"))
    limit = _limit(quota, _number(read_text(folder / "cpu.cfs_period_us")))
    return CpuGroup(path, weight=_IDLE_WEIGHT if _is_idle(folder) else weight, limit=limit)


def _group_v2(folder: Path, path: str) -> CpuGroup | None:
    weight = _number(read_text(folder / "cpu.weight"))
    if weight is None:
        return None
    quota, _, period = read_text(folder / "cpu.max").partition(" ")
    scaled = round(weight * DEFAULT_WEIGHT / _V2_DEFAULT, 1)
    return CpuGroup(
        path,
        weight=_IDLE_WEIGHT if _is_idle(folder) else scaled,
        limit=_limit(_number(quota), _number(period)),
    )


def _is_idle(folder: Path) -> bool:
    return read_text(folder / "cpu.idle") == "1"


def _limit(quota: float | None, period: float | None) -> float:
    """Return a quota in CPUs; 0 without one (version 1: -1, version 2: ``max``)."""
    return round(quota / period, 4) if quota and period and quota > 0 else 0.0


def _effective(folder: Path) -> str:
    return read_text(folder / "cpuset.cpus.effective") or read_text(
        folder / "cpuset.effective_cpus"
    )


def _autogroup(text: str) -> CpuGroup | None:
    """Return the group of ``/autogroup-7 nice 0``; its path has no slash, unlike a cgroup's."""
    name, _, nice = text.lstrip("/").partition(" nice ")
    with suppress(ValueError):
        return CpuGroup(name, weight=nice_weight(int(nice))) if name else None
    return None


def _thread_weight(stat: str) -> float:
    """Return the weight of a process by its ``/proc/PID/stat`` (proc(5): nice, policy)."""
    fields = stat.rpartition(")")[2].split()
    try:
        nice, policy = int(fields[16]), int(fields[38])
    except (IndexError, ValueError):
        return DEFAULT_WEIGHT
    return _IDLE_WEIGHT if policy == _SCHED_IDLE else nice_weight(nice)


def _number(text: str) -> float | None:
    with suppress(ValueError):
        return float(text)
    return None
