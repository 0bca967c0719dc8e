"""Source: the subjects of a host: pods, jobs, containers, units, and process groups.

A cgroup's CPU clock and throttling are read every tick: a finer clock than the 10 ms ticks of
/proc, and where a quota bites first.  The rest is read once a second.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from reveal_collector.kernel.errors import LayoutChanged, Unsupported
from reveal_collector.readers.plan import BACK_OFF, QUIET, FileScan, Gated, MemoryPlan
from reveal_collector.readers.raw_slice import MISSING, gather
from reveal_collector.readers.source import Roots, Source
from reveal_collector.readers.textfile import OpenFile
from reveal_collector.subjects.cgroup_files import FILES, CgroupFile, cpu_root, hierarchies
from reveal_collector.subjects.network import SubjectNetwork
from reveal_collector.subjects.pods.podlist import PodSource
from reveal_collector.subjects.processes import ProcessGroups
from reveal_collector.subjects.read_rotation import Turns
from reveal_collector.subjects.storage import SubjectStorage
from reveal_collector.subjects.tracker import Choice, Subject, SubjectTracker
from reveal_contract.catalogue import find
from reveal_contract.channels import Channel
from reveal_contract.metric import Kind, Lane
from reveal_contract.subjects import Identity

# New columns are shown from the next slice on: so many reads may pass until then.
_ROWS = {Lane.FAST: 10, Lane.SLOW: 1}  # a slice
_UNSHOWN = {Lane.FAST: 12, Lane.SLOW: 2}


def sources(
    roots: Roots, choice: Choice | None = None, pods: PodSource | None = None
) -> list[Source]:
    choice = choice or Choice()
    return subject_sources(roots, SubjectTracker(hierarchies(roots.cgroup), choice, pods))


def subject_sources(roots: Roots, tracker: SubjectTracker) -> list[Source]:
    """Return the sources of subjects; they share one tracker."""
    trees, choice = tracker.trees, tracker.choice
    return [
        CgroupClocks(trees, tracker),
        CgroupUse(trees, tracker),
        SubjectNetwork(roots, tracker),
        SubjectStorage(roots, tracker),
        ProcessGroups(roots.proc, cpu_root(trees), choice),
    ]


class _Cgroup:
    """The open files of one cgroup in one lane, and what they held last.

    What a subject used before its columns were shown, or between its last reading and its end,
    is not lost: the counters of a newborn read 0 until then and catch up in one step, and those
    of one that is gone stay for as long.
    """

    def __init__(self, subject: Subject, trees: Mapping[str, Path], lane: Lane) -> None:
        self.subject = subject
        self.channels: list[Channel] = []
        self.values: list[int | None] = []
        self.quiet = 0
        self._unborn = _UNSHOWN[lane] if subject.newborn else 0
        self._dead = 0
        self._unshown, self._rows, self._leads = _UNSHOWN[lane], _ROWS[lane], lane is Lane.FAST
        self._files: list[tuple[OpenFile, CgroupFile, list[int]]] = []
        self._texts: list[bytes] = []
        self._parsed: list[list[int | None]] = []  # of those texts, the columns shown
        self._still: list[int] = []  # reads without a change
        self._passed: list[int] = []  # times due since the last one
        self._scans: list[FileScan] | None = None
        self._held: MemoryPlan | None = None
        self.is_scanned = False  # then rows are shown by the scanner, whoever else reads
        self._last = b""
        taken: set[str] = set()
        for file in FILES:
            if file.hierarchy in trees and not taken.issuperset(file.metrics):
                self._add(file, trees[file.hierarchy] / subject.path[1:], taken, lane)

    def _add(self, file: CgroupFile, folder: Path, taken: set[str], lane: Lane) -> None:
        opened = file.opened(folder)
        if opened is None:
            return
        try:
            data = opened.read()
            parsed = file.parse(data)
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
        self._texts.append(data)
        self._parsed.append([parsed[at] for at in columns])
        self._still.append(0)
        self._passed.append(0)
        self.channels += [
            Channel(metric, self.subject.instance, find(metric).kind, file.scale(at), lane)
            for at in columns
            for metric in (file.metrics[at],)
        ]

    @property
    def clock_ns(self) -> int | None:
        """The CPU clock, of the fast lane's files, as read last."""
        value = self.values[0] if self.values else None
        return None if value is None else int(value * self.channels[0].scale)

    def shown(self) -> Sequence[int | None]:
        """The values for one row."""
        shown = self._shown_now()
        return shown if self.is_scanned else self._pass_time(shown)

    def _pass_time(self, shown: Sequence[int | None]) -> Sequence[int | None]:
        """One row more was shown; the newborn are born, the dead are forgotten."""
        if self._unborn:
            self._unborn -= 1
        elif self._dead:
            self._dead += 1
            if self._dead > self._unshown + 1:
                self.values = [None] * len(self.channels)
                return self.values
        return shown

    def _shown_now(self) -> Sequence[int | None]:
        if not self._unborn:
            return self.values
        return [
            0 if channel.kind is Kind.COUNTER and value is not None else value
            for channel, value in zip(self.channels, self.values, strict=True)
        ]

    def read(self, clock: bytes | None = None, back_off: int = 1) -> None:
        """Renew ``values``; ``clock`` is the first file's text if read already.

        A file that was the same for long is read every ``back_off``-th time.
        """
        values: list[int | None] = []
        self._scans = None
        for place, (opened, _, _) in enumerate(self._files):
            try:
                if clock is not None or self._is_due(place, back_off):
                    self._take(place, opened.read() if clock is None else clock)
            except OSError:  # ENODEV: the cgroup is gone
                self._die()
                return
            values.extend(self._parsed[place])
            clock = None
        self.values = values

    def _is_due(self, place: int, back_off: int) -> bool:
        self._passed[place] += 1
        return self._still[place] < QUIET or self._passed[place] >= back_off

    def _take(self, place: int, text: bytes) -> None:
        self._passed[place] = 0
        if text == self._texts[place]:  # most of them rarely change
            self._still[place] += 1
            return
        _, file, columns = self._files[place]
        self._texts[place], self._still[place] = text, 0
        self._parsed[place] = file.columns(text, columns)

    def read_clock(self, back_off: int = 1) -> bool:
        """Read the CPU clock and, only where it moved, what goes with it; whether it did."""
        if not self._files:
            return False
        try:
            data = self._files[0][0].read()
        except OSError:
            self._die()
            return False
        if data == self._last:
            return False
        self._last = data
        self.read(data, back_off)
        return True

    def scans(self) -> Sequence[FileScan]:
        """Its files for the scanner; of one that is gone, what is shown instead."""
        self.is_scanned = True
        if self._dead:
            return [FileScan(self._hold())]
        if self._scans is None:
            self._scans = []
            for (opened, file, columns), text in zip(self._files, self._texts, strict=True):
                plan = file.parse.plan(text, columns)
                gate = Gated(self.subject.instance, self._leads and not self._scans)
                self._scans.append(FileScan(plan, opened.fd, len(text), gate))
        return self._scans

    def _hold(self) -> MemoryPlan:
        """What is shown of one that is gone, in the place that the scanner takes it from."""
        shown = array("q")
        gather(shown, self._shown_now())
        if self._held is None:
            self._held = MemoryPlan(shown)
        self._held.values[:] = shown
        return self._held

    def observe(self, values: Sequence[int]) -> bool:
        """What the scanner read of it last; whether it did.  From now on it is shown as it is."""
        for _ in range(self._rows if self._dead else 0):
            self._pass_time(())
        self._unborn = 0
        if self._held is not None:
            self._hold()
        read = not self._dead and MISSING not in values
        if read:
            self.values = list(values)
        return read

    @property
    def is_unborn(self) -> bool:
        return bool(self._unborn)

    @property
    def needs_plan(self) -> bool:
        """It died, and the scanner does not know yet what to show instead of its files."""
        return bool(self._dead) and self._held is None

    def _die(self) -> None:
        """Keep what the counters showed last; a level of something gone is none."""
        self._dead = self._dead or 1
        held = self.values or [None] * len(self.channels)
        self.values = [
            value if channel.kind is Kind.COUNTER else None
            for channel, value in zip(self.channels, held, strict=True)
        ]

    def close(self) -> None:
        for opened, _, _ in self._files:
            opened.close()


class _CgroupSource:
    """What both lanes share: the files of every subject, renewed when the subjects change."""

    name: str
    lane: Lane
    slowdown_factor = 1

    def __init__(self, trees: Mapping[str, Path], tracker: SubjectTracker) -> None:
        self.channels: tuple[Channel, ...] = ()
        self._trees, self._tracker = trees, tracker
        self._seen: tuple[Subject, ...] = ()
        self._cgroups: list[_Cgroup] = []
        self._opened = False

    def open(self) -> None:
        if not self._trees:
            raise Unsupported("no cgroup hierarchy is mounted", "mount cgroup2, or pass its root")
        self._tracker.start()
        self._opened = True
        self._learn()

    def close(self) -> None:
        if self._opened:
            self._opened = False
            self._tracker.stop()
        for cgroup in self._cgroups:
            cgroup.close()
        self._cgroups, self._seen = [], ()

    def _learn(self) -> None:
        self._seen = self._tracker.current
        known = {cgroup.subject: cgroup for cgroup in self._cgroups}
        self._cgroups = [
            known.pop(subject) if subject in known else _Cgroup(subject, self._trees, self.lane)
            for subject in self._seen
        ]
        for gone in known.values():
            gone.close()
            self._tracker.clocks.pop(gone.subject, None)
        self.channels = tuple(channel for cgroup in self._cgroups for channel in cgroup.channels)

    def _follow(self) -> None:
        if self._tracker.current is not self._seen:
            self._learn()
            raise LayoutChanged(self.name)

    def scans(self) -> Sequence[FileScan]:
        return [scan for cgroup in self._cgroups for scan in cgroup.scans()]

    def stale(self) -> bool:
        return self._tracker.current is not self._seen or any(
            cgroup.needs_plan for cgroup in self._cgroups
        )

    def hidden_columns(self) -> Sequence[int]:
        """The columns of newborn cgroups read 0 in the first slice that has them."""
        at, found = 0, []
        for cgroup in self._cgroups:
            if cgroup.is_unborn:
                found += [
                    at + n for n, one in enumerate(cgroup.channels) if one.kind is Kind.COUNTER
                ]
            at += len(cgroup.channels)
        return found

    def observe(self, row: Sequence[int]) -> None:
        """What the scanner read last, kept for when a cgroup is gone."""
        at = 0
        for cgroup in self._cgroups:
            width = len(cgroup.channels)
            if cgroup.observe(row[at : at + width]):
                self._note_clock(cgroup)
            at += width

    def stop_observing(self) -> None:
        for cgroup in self._cgroups:
            cgroup.is_scanned = False

    def _note_clock(self, cgroup: _Cgroup) -> None:
        """The CPU clocks are for the other sources as well."""


class CgroupClocks(_CgroupSource):
    """CPU time and throttling of every cgroup, each tick."""

    name, lane = "cgroup-cpu", Lane.FAST

    def __init__(self, trees: Mapping[str, Path], tracker: SubjectTracker) -> None:
        super().__init__(trees, tracker)
        self._tick = 0

    def call_when_stale(self, call: Callable[[], None]) -> None:
        self._tracker.on_change = call

    def _note_clock(self, cgroup: _Cgroup) -> None:
        if (clock := cgroup.clock_ns) is not None:
            self._tracker.clocks[cgroup.subject] = clock

    def read(self) -> Sequence[int | None]:
        self._follow()
        self._tick += 1
        row: list[int | None] = []
        back_off = BACK_OFF * self.slowdown_factor
        for place, cgroup in enumerate(self._cgroups):
            if cgroup.quiet < QUIET or (self._tick + place) % back_off == 0:
                if cgroup.read_clock(back_off):
                    cgroup.quiet = 0
                    self._note_clock(cgroup)
                else:
                    cgroup.quiet += 1
            row.extend(cgroup.shown())
        return row


class CgroupUse(_CgroupSource):
    """Memory, storage, tasks, limits and stalls of every cgroup, once a second.

    A cgroup that used no CPU since the last time is looked at every ``BACK_OFF``-th time:
    little happens to it, and the rest of its numbers would cost as much as a busy one's.
    """

    name, lane = "cgroups", Lane.SLOW

    def __init__(self, trees: Mapping[str, Path], tracker: SubjectTracker) -> None:
        super().__init__(trees, tracker)
        self._turns = Turns(tracker)

    @property
    def subjects(self) -> tuple[Identity, ...]:
        """Who the instances are, for the subject table."""
        return self._tracker.identities

    @property
    def health_error(self) -> str:
        """Why pods may be unknown, while they may."""
        return self._tracker.pods.health_error

    def read(self) -> Sequence[int | None]:
        self._follow()
        self._turns.begin()
        row: list[int | None] = []
        for place, cgroup in enumerate(self._cgroups):
            due = self._turns.due(place, cgroup.subject, BACK_OFF * self.slowdown_factor)
            # where the scanner reads, a plan failed, of no one knows which
            if due or not cgroup.values or cgroup.is_scanned:
                cgroup.read()
            row.extend(cgroup.shown())
        return row
