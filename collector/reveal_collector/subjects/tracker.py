"""Tracker of the cgroups that are subjects: a background thread with inotify and tree walks.

A subject is a pod, a job, a container or a unit; elsewhere it is the cgroup that holds processes.
Cgroups below a subject belong to it, so each process is counted with one subject.  Where one
subject lies inside another, its identity names the outer one as ``parent``.
"""

from __future__ import annotations

import logging
import os
import select
import threading
import time
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path

from reveal_collector.kernel_interfaces.inotify import Inotify
from reveal_collector.subjects.cgroup_paths import SubjectPath, process_cgroups
from reveal_collector.subjects.cgroup_walk import (
    FoundCgroup,
    cpu_usage,
    enabled_controllers,
    walk,
)
from reveal_collector.subjects.cgroup_watch import CgroupWatches
from reveal_collector.subjects.divided_units import DividedUnits
from reveal_collector.subjects.pods.names import (
    identify,
    subject_paths,
    with_parents,
    with_unique_instances,
)
from reveal_collector.subjects.pods.podlist import NoPods, PodIndex, PodSource
from reveal_collector.subjects.stable_selection import CpuRates, StableSelection, mean_rates
from reveal_collector.subjects.starts import StartCounts
from reveal_collector.subjects.subject_table import updated_identities
from reveal_contract.subjects import Identity, SubjectKind

log = logging.getLogger(__name__)

_EMPTY_GRACE_S = 30.0
_LINGER_S = 30.0
_ENDING_S = 3.0  # a subject that ended still delivers its last increase for so long
_NEWBORN_S = 3.0  # for so long, everything that a new subject ever used is its first increase
_RESCAN_S = 30.0
_RESCAN_WITHOUT_WATCH_S = 5.0
_POD_LIST_S = 10.0  # a pod that is named by its uid first is another subject afterwards
_SETTLE_S, _MIN_WALK_INTERVAL_S = 0.05, 0.5
_WALK_INTERVAL_FACTOR = 20  # a walk may take at most 1/20 of the time
_MARGIN = 0.02  # CPUs that a subject must use more than another to replace it


@dataclass(frozen=True)
class SubjectSelection:
    """Settings that decide which cgroups become subjects."""

    limit: int = 64
    leave_out: tuple[str, ...] = ()  # prefixes of instances
    containers: bool = False  # containers of a pod with several become subjects of their own

    def accepts(self, instance: str) -> bool:
        """Return whether no excluded prefix matches the instance."""
        return not instance.startswith(self.leave_out) if self.leave_out else True


@dataclass(frozen=True)
class CgroupLayout:
    """What decides which files a cgroup has: inodes by hierarchy, and version 2 controllers.

    Both can change during the life of a cgroup.  systemd creates a unit hierarchy by hierarchy.
    It enables a controller for all cgroups of a directory when the first one needs it, and
    disables it with the last one.
    """

    inodes: tuple[int, ...] = ()
    controllers: bytes = b""

    def matches(self, found: FoundCgroup) -> bool:
        """Return whether this is the same cgroup and not a later one of the same name."""
        return not set(self.inodes).isdisjoint(found.inodes)

    def updated(self, found: FoundCgroup, controllers: bytes | None) -> CgroupLayout:
        """Return the current layout; a cgroup under removal keeps the inodes that it had."""
        grown = not set(self.inodes).issuperset(found.inodes)
        return CgroupLayout(
            tuple(found.inodes) if grown else self.inodes,
            self.controllers if controllers is None else controllers,
        )


@dataclass(frozen=True)
class CgroupSubject:
    """A cgroup that is a subject: its path below the root of every hierarchy, and its inode.

    ``instance`` is the instance of its channels.  ``newborn`` means that the cgroup was created
    a moment ago, so its counters started at 0.  A change of ``layout`` makes it another
    subject, because its files are others.
    """

    path: str  # "/system.slice/ssh.service"
    inode: int
    instance: str
    newborn: bool = field(default=False, compare=False)
    kind: SubjectKind = field(default=SubjectKind.CGROUP, compare=False)
    layout: CgroupLayout = CgroupLayout()
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        key = self.path, self.inode, self.instance, self.layout
        object.__setattr__(self, "_hash", hash(key))

    def __hash__(self) -> int:  # a key of many lookups a second
        return self._hash


@dataclass(frozen=True)
class Candidate:
    """A subject found by a walk, before the selection."""

    subject: CgroupSubject
    identity: Identity
    usage_ns: int = 0  # CPU time, used for ranking


class SubjectTracker:
    """The subjects of this host, updated in the background.

    ``current`` is replaced as a whole, and only when a subject is new or one must make room.  A
    subject that ended stays in it for a while, because every change costs a new channel table.
    ``identities`` is the subject table: all selected subjects, and those that ended recently.
    ``candidates`` are all that exist, for the ledger.
    """

    def __init__(
        self, trees: Mapping[str, Path], selection: SubjectSelection, pods: PodSource | None = None
    ) -> None:
        self.current: tuple[CgroupSubject, ...] = ()
        self.on_change: Callable[[], None] | None = None  # called after ``current`` is replaced
        self.on_found: Callable[[], None] | None = None  # called when ``candidates`` has new ones
        self.identities: tuple[Identity, ...] = ()
        self.candidates: tuple[Candidate, ...] = ()  # also those not selected; busiest first
        self.pods: PodSource = pods or NoPods()
        # CPU clock in ns by subject, noted by the fast source: other sources skip idle subjects
        self.clocks: dict[CgroupSubject, int] = {}
        self.starts = StartCounts()
        self.trees, self.selection = trees, selection
        self._rates: CpuRates[str] = CpuRates()
        self._selection: StableSelection[str] = StableSelection(selection.limit, _MARGIN, name=str)
        self._last_present: dict[CgroupSubject, float] = {}
        self._first_present: dict[tuple[str, int], float] = {}
        self._newborn: set[tuple[str, int]] = set()
        self._walked = self._measured = False
        self._started = 0.0
        self.walking_since_ns = 0  # monotonic, of the walk under way; 0 between two
        self._units = DividedUnits(trees)
        self._users = 0
        self._wake = -1
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Register one more source that uses the tracker; the first one starts the thread."""
        self._users += 1
        if self._users == 1:
            self._stopping.clear()
            self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
            self.pods.start(self._wake_thread)
            self._started = time.monotonic()
            self.update(self._started)
            self._thread = threading.Thread(target=self._run, name="reveal-cgroups", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Remove one user; the last one stops the thread."""
        self._users = max(0, self._users - 1)
        if self._users == 0 and self._thread is not None:
            self.pods.stop()
            self._stopping.set()
            self._wake_thread()
            self._thread.join(1.0)
            wake, self._wake = self._wake, -1
            os.close(wake)
            self._thread = None

    def subject_of(self, pid: int, proc: Path) -> str | None:
        """Return the instance of the subject that a process belongs to.

        Return ``None`` for a process in no subject's cgroup.  Raises ``OSError`` if the process
        has ended.
        """
        text = os.fsdecode((proc / str(pid) / "cgroup").read_bytes())
        index = self.pods.index
        instances = {subject.path: subject.instance for subject in self.current}
        for path in process_cgroups(text):
            for owner in reversed(self._subject_paths(path, index)):
                if self._awaits_name(owner, index, time.monotonic()):
                    return None
                return instances.get(owner.root) or identify(owner, index, 0).instance
        return None

    def _subject_paths(self, path: str, index: PodIndex) -> tuple[SubjectPath, ...]:
        return subject_paths(path, index, self.selection.containers, self._units.divided)

    def _awaits_name(self, owner: SubjectPath, index: PodIndex, now: float) -> bool:
        """Return whether a pod is to be named by the first list of pods, which is still to come."""
        if self.pods.is_listed or now - self._started >= _POD_LIST_S:
            return False
        return owner.kind is SubjectKind.POD and index.find(owner.uid, owner.container) is None

    def unselected(self, instances: Set[str]) -> tuple[Identity, ...]:
        """Return the identities of those candidates that the subject table does not have."""
        displayed = instances - {identity.instance for identity in self.identities}
        candidates = (each.identity for each in self.candidates)
        return tuple(each for each in candidates if each.instance in displayed)

    def update(self, now: float, found: Mapping[str, FoundCgroup] | None = None) -> None:
        """Update ``current`` and ``identities`` from ``found``, by default from a new walk."""
        found = walk(self.trees) if found is None else found
        self._note_creation(found, now)
        self._units.update(found)
        candidates = self._find_candidates(found, now)
        uses = self._cpu_use(candidates, now)
        known = {each.subject for each in self.candidates}
        ranked = sorted(candidates.values(), key=lambda each: -uses[each.subject.path])
        self.candidates = tuple(ranked)
        if self.on_found and any(each.subject not in known for each in self.candidates):
            self.on_found()
        selected = [candidates[path] for path in sorted(self._selection.update(uses, now))]
        self._replace_current([candidate.subject for candidate in selected], now)
        self.starts.update(found, candidates, self.current)
        self.identities = updated_identities(
            self.identities, [candidate.identity for candidate in selected], time.time_ns()
        )

    def _replace_current(self, selected: Sequence[CgroupSubject], now: float) -> None:
        """Replace ``current`` if a subject is new, or if one ended long enough ago."""
        self._last_present.update(dict.fromkeys(selected, now))
        absent_s = {
            subject: now - self._last_present.get(subject, now)
            for subject in self.current
            if subject not in selected
        }
        has_new = bool(set(selected) - set(self.current))
        has_expired = any(seconds > _LINGER_S for seconds in absent_s.values())
        if not has_new and not has_expired:
            return
        # The last increase of a subject that ended a moment ago has not been sent yet.  Its
        # instance may belong to its successor by now: two subjects of one instance would collide.
        instances = {subject.instance for subject in selected}
        ending = [
            subject
            for subject, seconds in absent_s.items()
            if seconds < _ENDING_S and subject.instance not in instances
        ]
        self.current = (*selected, *ending)
        if self.on_change is not None:
            self.on_change()
        self._last_present = {
            subject: self._last_present[subject]
            for subject in self.current
            if subject in self._last_present
        }

    def _note_creation(self, found: Mapping[str, FoundCgroup], now: float) -> None:
        """Note when each cgroup was found first; those created since the last walk are newborn."""
        present = {(path, cgroup.inode) for path, cgroup in found.items()}
        if self._walked:  # the first walk cannot know when its cgroups were created
            self._newborn = (self._newborn | (present - self._first_present.keys())) & present
        self._first_present = {key: self._first_present.get(key, now) for key in present}
        self._walked = True

    def _find_candidates(
        self, found: Mapping[str, FoundCgroup], now: float
    ) -> dict[str, Candidate]:
        """Return the possible subjects by the path of their cgroup."""
        identities = self._identified(found, now)
        known = {
            subject.path: subject
            for subject in self.current
            if subject.path in identities and subject.layout.matches(found[subject.path])
        }
        instances = {path: subject.instance for path, subject in known.items()}
        named = with_parents(with_unique_instances(identities, instances))
        return {
            path: Candidate(
                self._subject(path, identity, found[path], known.get(path), now),
                identity,
                cpu_usage(self.trees, path),
            )
            for path, identity in named.items()
        }

    def _identified(
        self, found: Mapping[str, FoundCgroup], now: float
    ) -> dict[str, tuple[Identity, SubjectPath]]:
        """Return the identities that the settings accept, by the path of their cgroup."""
        index = self.pods.index
        identities: dict[str, tuple[Identity, SubjectPath]] = {}
        for path, cgroup in found.items():
            # Processes enter a cgroup some time after its creation, so a new leaf may be empty.
            # An old empty cgroup, or an empty inner one, does no work itself.
            age_s = now - self._first_present[path, cgroup.inode]
            if not cgroup.has_processes and not (cgroup.is_leaf and age_s < _EMPTY_GRACE_S):
                continue
            for owner in self._subject_paths(path, index):
                root = found.get(owner.root)
                if self._awaits_name(owner, index, now):
                    continue
                self.starts.note(owner)
                if root is not None and owner.root not in identities:
                    identities[owner.root] = identify(owner, index, root.inode), owner
        return {
            path: (identity, owner)
            for path, (identity, owner) in identities.items()
            if self.selection.accepts(path) and self.selection.accepts(identity.instance)
        }

    def _subject(
        self, path: str, name: Identity, found: FoundCgroup, known: CgroupSubject | None, now: float
    ) -> CgroupSubject:
        inode, key = found.inode, (path, found.inode)
        newborn = key in self._newborn and now - self._first_present[key] < _NEWBORN_S
        controllers = enabled_controllers(self.trees, path)
        if known is None:
            layout = CgroupLayout().updated(found, controllers)
        else:
            # Keep the inode: once the first hierarchy is removed, the next one shows another.
            inode, layout = known.inode, known.layout.updated(found, controllers)
            # With another layout the earlier columns have been sent: they do not start at 0.
            newborn = newborn and layout == known.layout
        return CgroupSubject(path, inode, name.instance, newborn, name.kind, layout)

    def _cpu_use(self, candidates: Mapping[str, Candidate], now: float) -> dict[str, float]:
        """Return the CPUs that each candidate used since the last walk.

        The first walk has no earlier value: it returns the mean since the boot.
        """
        clocks = {path: candidate.usage_ns for path, candidate in candidates.items()}
        rates = self._rates.update(clocks, now)
        measured, self._measured = self._measured, True
        return rates if measured else mean_rates(clocks)

    def _wake_thread(self) -> None:
        """Make the thread walk now; callable from any thread."""
        if self._wake >= 0:
            os.eventfd_write(self._wake, 1)

    def _run(self) -> None:
        try:
            inotify = Inotify()
        except OSError as error:
            log.info(
                "inotify is not available (%s): cgroups are scanned every %g s",
                error, _RESCAN_WITHOUT_WATCH_S,
            )  # fmt: skip
            while not self._stopping.wait(_RESCAN_WITHOUT_WATCH_S):
                self._update_or_log(lambda: walk(self.trees))
            return
        with inotify:
            self._run_with_inotify(inotify)

    def _run_with_inotify(self, inotify: Inotify) -> None:
        watches = CgroupWatches(inotify, self.trees)
        while not self._stopping.is_set():
            started = time.monotonic()
            self._update_or_log(watches.walk)
            walked = time.monotonic()
            # Where the kernel refused a watch, changes go unnoticed: walk more often.
            rescan_s = _RESCAN_S if watches.complete else _RESCAN_WITHOUT_WATCH_S
            ready = self._wait(
                inotify, rescan_s if self.pods.is_listed else _RESCAN_WITHOUT_WATCH_S
            )
            if self._wake in ready:
                os.eventfd_read(self._wake)
            if ready:
                # A unit creates its cgroup in each hierarchy one after the other: let it settle.
                # Some hosts create many units a second: limit the share of time that walks take.
                interval = max(_MIN_WALK_INTERVAL_S, _WALK_INTERVAL_FACTOR * (walked - started))
                self._stopping.wait(max(_SETTLE_S, walked + interval - time.monotonic()))
                inotify.drain()

    def _wait(self, inotify: Inotify, seconds: float) -> list[int]:
        """Return the readable descriptors; poll, as select takes no descriptor above 1023."""
        waiting = select.poll()
        for file in (inotify.fileno(), self._wake):
            waiting.register(file, select.POLLIN)
        return [file for file, _ in waiting.poll(seconds * 1000)]

    def _update_or_log(self, find: Callable[[], Mapping[str, FoundCgroup]]) -> None:
        self.walking_since_ns = time.monotonic_ns()
        try:
            self.update(time.monotonic(), find())
        except OSError as error:
            log.warning("cannot scan the cgroups: %s", error)
        except Exception:  # a defect must not end the thread: the next walk may succeed
            log.exception("cannot scan the cgroups")
        finally:
            self.walking_since_ns = 0
