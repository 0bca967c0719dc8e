"""Source: the subjects of a host: pods, jobs, containers, units, and process groups.

The CPU clock and the throttling of a cgroup are read every tick: this clock is finer than the
10 ms ticks of /proc, and CPU quotas show there first.  All other files are read once a second.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from reveal_collector.devices.block_devices import is_repeated
from reveal_collector.kernel_interfaces.errors import LayoutChanged, Unsupported
from reveal_collector.readers.plan import BACK_OFF, QUIET, FileScan
from reveal_collector.readers.source import Outage, Roots, Source
from reveal_collector.readers.textfile import unfit_files, unfit_lines
from reveal_collector.subjects.cgroup_files import cpu_root, hierarchies
from reveal_collector.subjects.cgroup_reader import CgroupReader
from reveal_collector.subjects.network import SubjectNetwork
from reveal_collector.subjects.pods.podlist import PodSource
from reveal_collector.subjects.processes import ProcessGroups
from reveal_collector.subjects.read_rotation import ReadRotation
from reveal_collector.subjects.starts import SubjectStarts
from reveal_collector.subjects.storage import SubjectStorage
from reveal_collector.subjects.subject_table import with_inner
from reveal_collector.subjects.tracker import CgroupSubject, SubjectSelection, SubjectTracker
from reveal_contract.channels import Channel
from reveal_contract.metric import Kind, Lane
from reveal_contract.subjects import Identity


def sources(
    roots: Roots, selection: SubjectSelection | None = None, pods: PodSource | None = None
) -> list[Source]:
    """Return the sources of subjects with a tracker of their own."""
    selection = selection or SubjectSelection()
    return subject_sources(roots, SubjectTracker(hierarchies(roots.cgroup), selection, pods))


def subject_sources(roots: Roots, tracker: SubjectTracker) -> list[Source]:
    """Return the sources of subjects that share a tracker."""
    groups = ProcessGroups(roots, cpu_root(tracker.trees), tracker.selection, tracker.subject_of)
    return [
        CgroupClocks(roots, tracker),
        CgroupUsage(roots, tracker, groups),
        SubjectStarts(tracker),
        SubjectNetwork(roots, tracker),
        SubjectStorage(roots, tracker),
        groups,
    ]


class _CgroupSource:
    """Base of both lanes: one reader for each subject, updated when the subjects change."""

    name: str
    lane: Lane
    slowdown_factor = 1

    def __init__(self, roots: Roots, tracker: SubjectTracker) -> None:
        self.channels: tuple[Channel, ...] = ()
        self._trees, self._tracker = tracker.trees, tracker
        self._is_repeated = partial(is_repeated, roots.sys)
        self._subjects: tuple[CgroupSubject, ...] = ()
        self._readers: list[CgroupReader] = []
        self._opened = False

    def open(self) -> None:
        if not self._trees:
            raise Unsupported(
                "no cgroup hierarchy is mounted", "mount cgroup2, or set the path of its root"
            )
        self._tracker.start()
        self._opened = True
        self._update_readers()

    def close(self) -> None:
        if self._opened:
            self._opened = False
            self._tracker.stop()
        for reader in self._readers:
            reader.close()
        self._readers, self._subjects = [], ()

    def _update_readers(self) -> None:
        self._subjects = self._tracker.current
        known = {reader.subject: reader for reader in self._readers}
        self._readers = [
            known.pop(subject)
            if subject in known
            else CgroupReader(subject, self._trees, self.lane, self._is_repeated)
            for subject in self._subjects
        ]
        for removed in known.values():
            removed.close()
            self._tracker.clocks.pop(removed.subject, None)
        self.channels = tuple(channel for reader in self._readers for channel in reader.channels)

    def _check_subjects(self) -> None:
        """Raise ``LayoutChanged`` after an update if the subjects changed."""
        if self._tracker.current is not self._subjects:
            self._update_readers()
            raise LayoutChanged(self.name)

    def scans(self) -> Sequence[FileScan]:
        return [scan for reader in self._readers for scan in reader.scans()]

    def stale(self) -> bool:
        return self._tracker.current is not self._subjects or any(
            reader.needs_plan for reader in self._readers
        )

    def hidden_columns(self) -> Sequence[int]:
        """Return the columns that show 0 in their first slice: counters of newborn cgroups."""
        offset, hidden = 0, []
        for reader in self._readers:
            if reader.is_newborn:
                hidden += [
                    offset + column
                    for column, channel in enumerate(reader.channels)
                    if channel.kind is Kind.COUNTER
                ]
            offset += len(reader.channels)
        return hidden

    def observe(self, row: Sequence[int]) -> None:
        """Keep the values that the scanner read last, for when a cgroup has ended."""
        offset = 0
        for reader in self._readers:
            width = len(reader.channels)
            if reader.observe(row[offset : offset + width]):
                self._note_clock(reader)
            offset += width

    @property
    def degraded(self) -> Sequence[str]:
        """One phrase while files have lines in an unknown form."""
        unfit = {path: lines for reader in self._readers for path, lines in reader.unfit.items()}
        if len(unfit) == 1:
            ((path, lines),) = unfit.items()
            return unfit_lines(self.name, path, lines)
        return unfit_files(self.name, list(unfit))

    def stop_observing(self) -> None:
        for reader in self._readers:
            reader.is_scanned = False

    def _note_clock(self, reader: CgroupReader) -> None:
        """Publish the CPU clock to the other sources; only the fast lane reads it."""


class CgroupClocks(_CgroupSource):
    """CPU time and throttling of every cgroup, each tick."""

    name, lane = "cgroup-cpu", Lane.FAST

    def __init__(self, roots: Roots, tracker: SubjectTracker) -> None:
        super().__init__(roots, tracker)
        self._tick = 0

    def call_when_stale(self, call: Callable[[], None]) -> None:
        self._tracker.on_change = call

    def _note_clock(self, reader: CgroupReader) -> None:
        if (clock := reader.clock_ns) is not None:
            self._tracker.clocks[reader.subject] = clock

    def read(self) -> Sequence[int | None]:
        self._check_subjects()
        self._tick += 1
        row: list[int | None] = []
        back_off = BACK_OFF * self.slowdown_factor
        for position, reader in enumerate(self._readers):
            # An idle cgroup is read every few ticks only; the position spreads these reads.
            if reader.quiet < QUIET or (self._tick + position) % back_off == 0:
                if reader.read_clock(back_off):
                    reader.quiet = 0
                    self._note_clock(reader)
                else:
                    reader.quiet += 1
            row.extend(reader.row())
        return row


class CgroupUsage(_CgroupSource):
    """Memory, storage, tasks, limits and stalls of every cgroup, once a second.

    A cgroup that used no CPU since the last read, which changed nothing, is read every ``BACK_OFF``
    seconds only: its numbers rarely change, and reading them costs as much as those of a busy one.
    """

    name, lane = "cgroups", Lane.SLOW

    def __init__(self, roots: Roots, tracker: SubjectTracker, groups: ProcessGroups) -> None:
        super().__init__(roots, tracker)
        self._rotation = ReadRotation(tracker)
        self._groups = groups
        self._known: tuple[tuple[Identity, ...], Mapping[str, str]] = (), {}
        self._subject_table: tuple[Identity, ...] = ()

    @property
    def subjects(self) -> tuple[Identity, ...]:
        """The identities behind the instances; the same object while nothing changes."""
        identities, outer = self._tracker.identities, self._groups.outer
        if identities is not self._known[0] or outer is not self._known[1]:
            self._known = identities, outer
            table = with_inner(identities, outer)
            if table != self._subject_table:
                self._subject_table = table
        return self._subject_table

    @property
    def health_error(self) -> str:
        """Why pods may be unknown; "" if the list of pods is current."""
        return self._tracker.pods.health_error

    def outage(self) -> Outage | None:
        """Return since when the walk over the cgroups has not ended; None between two."""
        since_ns = self._tracker.walking_since_ns
        return Outage(since_ns, "the search for new cgroups has not ended") if since_ns else None

    def read(self) -> Sequence[int | None]:
        self._check_subjects()
        self._rotation.advance()
        row: list[int | None] = []
        for position, reader in enumerate(self._readers):
            due = self._rotation.is_due(position, reader.subject, BACK_OFF * self.slowdown_factor)
            # The scanner hands over to this method after any plan failed, so read all of them.
            if due or not reader.values or reader.is_scanned:
                before = reader.values
                reader.read()
                self._rotation.note(reader.subject, changed=reader.values != before)
            row.extend(reader.row())
        return row
