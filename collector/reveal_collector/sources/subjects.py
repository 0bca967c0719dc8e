"""Source: the tenants of a host without Kubernetes: its cgroups, and process groups besides.

A cgroup's CPU clock and throttling are read every tick: a finer clock than the 10 ms ticks of
/proc, and where a quota bites first.  The rest is read once a second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from reveal_collector.source import LayoutChanged, Roots, Source, Unsupported
from reveal_collector.sources.cgroups import FILES, CgroupFile, cpu_root, hierarchies
from reveal_collector.sources.processes import ProcessGroups
from reveal_collector.sources.tenants import Choice, Tenant, Tenants
from reveal_collector.textfile import KeptFile
from reveal_contract.catalogue import find
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane

# A cgroup that used no CPU for QUIET reads is looked at every BACK_OFF-th time only.
QUIET = 30
BACK_OFF = 5


def sources(roots: Roots, choice: Choice | None = None) -> list[Source]:
    choice = choice or Choice()
    trees = hierarchies(roots.cgroup)
    tenants = Tenants(trees, choice)
    return [
        CgroupClocks(trees, tenants),
        CgroupUse(trees, tenants),
        ProcessGroups(roots.proc, cpu_root(trees), choice),
    ]


class _Cgroup:
    """The open files of one cgroup in one lane, and what they held last."""

    def __init__(self, tenant: Tenant, trees: Mapping[str, Path], lane: Lane) -> None:
        self.tenant = tenant
        self.channels: list[Channel] = []
        self.values: list[int | None] = []
        self.quiet = 0
        self._files: list[tuple[KeptFile, CgroupFile, list[int]]] = []
        self._last = b""
        taken: set[str] = set()
        for file in FILES:
            if file.hierarchy in trees and not taken.issuperset(file.metrics):
                self._add(file, trees[file.hierarchy] / tenant.path[1:], taken, lane)

    def _add(self, file: CgroupFile, folder: Path, taken: set[str], lane: Lane) -> None:
        opened = _first(folder, file.names)
        if opened is None:
            return
        try:
            parsed = file.parse(opened.read())
        except (OSError, ValueError):
            parsed = ()
        columns = [
            at for at, (metric, value) in enumerate(zip(file.metrics, parsed, strict=False))
            if value is not None and metric not in taken
        ]  # fmt: skip
        taken.update(file.metrics[at] for at in columns)
        if not columns or file.lane is not lane:
            opened.close()
            return
        self._files.append((opened, file, columns))
        self.channels += [
            Channel(metric, self.tenant.path, find(metric).kind, file.scale(at), lane)
            for at in columns
            for metric in (file.metrics[at],)
        ]

    def read(self, clock: bytes | None = None) -> None:
        """Renew ``values``, all columns; ``clock`` is the first file's text if read already."""
        values: list[int | None] = []
        for opened, file, columns in self._files:
            try:
                parsed = file.parse(opened.read() if clock is None else clock)
                values.extend([parsed[at] for at in columns])
            except (OSError, ValueError):  # ENODEV: the cgroup is gone; or its text is garbled
                values.extend([None] * len(columns))
            clock = None
        self.values = values

    def read_clock(self) -> bool:
        """Read the CPU clock and, only where it moved, what goes with it; whether it did."""
        if not self._files:
            return False
        try:
            data = self._files[0][0].read()
        except OSError:
            self.values = [None] * len(self.channels)
            return False
        if data == self._last:
            return False
        self._last = data
        self.read(data)
        return True

    def close(self) -> None:
        for opened, _, _ in self._files:
            opened.close()


class _CgroupSource:
    """What both lanes share: the files of every tenant, renewed when the tenants change."""

    name: str
    lane: Lane

    def __init__(self, trees: Mapping[str, Path], tenants: Tenants) -> None:
        self.channels: tuple[Channel, ...] = ()
        self._trees, self._tenants = trees, tenants
        self._seen: tuple[Tenant, ...] = ()
        self._cgroups: list[_Cgroup] = []
        self._opened = False

    def open(self) -> None:
        if not self._trees:
            raise Unsupported("no cgroup hierarchy is mounted", "mount cgroup2, or pass its root")
        self._tenants.start()
        self._opened = True
        self._learn()

    def close(self) -> None:
        if self._opened:
            self._opened = False
            self._tenants.stop()
        for cgroup in self._cgroups:
            cgroup.close()
        self._cgroups, self._seen = [], ()

    def _learn(self) -> None:
        self._seen = self._tenants.current
        known = {cgroup.tenant: cgroup for cgroup in self._cgroups}
        self._cgroups = [
            known.pop(tenant) if tenant in known else _Cgroup(tenant, self._trees, self.lane)
            for tenant in self._seen
        ]
        for gone in known.values():
            gone.close()
        self.channels = tuple(channel for cgroup in self._cgroups for channel in cgroup.channels)

    def _follow(self) -> None:
        if self._tenants.current is not self._seen:
            self._learn()
            raise LayoutChanged(self.name)


class CgroupClocks(_CgroupSource):
    """CPU time and throttling of every cgroup, each tick."""

    name, lane = "cgroup-cpu", Lane.FAST

    def __init__(self, trees: Mapping[str, Path], tenants: Tenants) -> None:
        super().__init__(trees, tenants)
        self._tick = 0

    def read(self) -> Sequence[int | None]:
        self._follow()
        self._tick += 1
        row: list[int | None] = []
        for place, cgroup in enumerate(self._cgroups):
            if cgroup.quiet < QUIET or (self._tick + place) % BACK_OFF == 0:
                if cgroup.read_clock():
                    cgroup.quiet = 0
                    self._tenants.moved.add(cgroup.tenant)
                else:
                    cgroup.quiet += 1
            row.extend(cgroup.values)
        return row


class CgroupUse(_CgroupSource):
    """Memory, storage, tasks, limits and stalls of every cgroup, once a second.

    A cgroup that used no CPU since the last time is looked at every ``BACK_OFF``-th time:
    little happens to it, and the rest of its numbers would cost as much as a busy one's.
    """

    name, lane = "cgroups", Lane.SLOW

    def __init__(self, trees: Mapping[str, Path], tenants: Tenants) -> None:
        super().__init__(trees, tenants)
        self._second = 0

    def read(self) -> Sequence[int | None]:
        self._follow()
        self._second += 1
        moved = self._tenants.moved.copy()
        self._tenants.moved -= moved
        row: list[int | None] = []
        for place, cgroup in enumerate(self._cgroups):
            due = (self._second + place) % BACK_OFF == 0
            if due or not cgroup.values or cgroup.tenant in moved:
                cgroup.read()
            row.extend(cgroup.values)
        return row


def _first(folder: Path, names: Sequence[str]) -> KeptFile | None:
    for name in names:
        opened = KeptFile(folder / name)
        try:
            opened.open()
        except Unsupported:
            continue
        return opened
    return None
