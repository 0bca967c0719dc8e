"""The thread that gives slots to subjects: it reads files, for which sampling must not wait."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from reveal_collector.ledger.names import NAMED_SHARE, CgroupKeys, GroupKeys
from reveal_collector.ledger.programs import KEY_SESSION, Programs, Totals
from reveal_collector.ledger.shares import ShareReader
from reveal_collector.ledger.slots import SlotTable
from reveal_collector.subjects.tracker import SubjectTracker
from reveal_contract.time_units import NS_PER_SECOND

log = logging.getLogger(__name__)

_PERIOD_S = 1.0
# Between two walks over all threads, which cost 3 us each: after a change, and in any case.
_LOOK_S, _LOOK_ANYWAY_S = 10.0, 60.0


@dataclass(frozen=True)
class Observed:
    """What the last reading showed: the totals, and the CPUs that each subject desired."""

    totals: Totals | None = None
    uses: Mapping[str, float] | None = None


class Naming:
    """Names the keys of threads once a second, and at once when there are new cgroups.

    ``table`` has the result, and ``shares`` has what the subjects in the matrix are entitled to.
    """

    def __init__(
        self,
        programs: Programs,
        tracker: SubjectTracker,
        cgroups: CgroupKeys,
        groups: GroupKeys | None,
        shares: ShareReader,
        observed: Callable[[], Observed],
    ) -> None:
        self.table, self.shares = SlotTable(), shares
        self.folded = 0  # subjects above NAMED_SHARE of a CPU that have no name, or no index
        self._programs, self._tracker = programs, tracker
        self._cgroups, self._groups, self._observed = cgroups, groups, observed
        self._stopping, self._has_new = threading.Event(), threading.Event()
        self._passed_ns = time.monotonic_ns()
        self._looked_s = time.monotonic()
        self._must_look = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Make the first pass, then one each second in a thread."""
        self.update()
        self._tracker.on_found = self._has_new.set
        self._thread = threading.Thread(target=self._run, name="reveal-ledger", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread."""
        self._tracker.on_found = None
        self._stopping.set()
        self._has_new.set()
        if self._thread is not None:
            self._thread.join(1.0)
            self._thread = None

    def update(self) -> None:
        """Give slots to all subjects that exist or were busy in the last second."""
        now, now_ns = time.monotonic(), time.monotonic_ns()
        elapsed_ns, self._passed_ns = now_ns - self._passed_ns, now_ns
        observed = self._observed()
        uses = observed.uses or {}
        occupied = _occupied_slots(observed.totals)
        names = {slot.name for slot in self.table.current if slot.number in occupied}
        unnamed = self._programs.take_unnamed()
        cgroups = [each.subject for each in self._tracker.candidates]
        subjects = self._cgroups.of(cgroups)
        if self._groups is not None:
            subjects |= self._groups.update(unnamed, elapsed_ns, names)
        changes = self.table.update(subjects, uses, occupied, now)
        for key, (slot, busy) in changes.named.items():
            self._programs.name(key, slot, busy)
        for key in changes.forgotten:
            self._programs.forget(key)
        if changes:
            self._programs.raise_generation()
            self._must_look = True
        self._look(now)
        paths = {subject.instance: subject.path for subject in cgroups}
        self.shares.update([slot for slot in self.table.current if slot.has_index], paths, now)
        self.folded = self._count_folded(unnamed, uses, elapsed_ns)

    def _look(self, now: float) -> None:
        """Let sleeping threads move to their new subject, not too often."""
        if now - self._looked_s >= (_LOOK_S if self._must_look else _LOOK_ANYWAY_S):
            self._programs.walk_threads()
            self._looked_s, self._must_look = now, False

    def _count_folded(
        self, unnamed: Mapping[int, int], uses: Mapping[str, float], elapsed_ns: int
    ) -> int:
        named = {key for slot in self.table.current for key in slot.keys}
        least = NAMED_SHARE * max(elapsed_ns, NS_PER_SECOND // 2)
        without_name = sum(
            used >= least for key, used in unnamed.items() if key < KEY_SESSION and key not in named
        )
        without_index = sum(
            uses.get(slot.name, 0.0) >= NAMED_SHARE
            for slot in self.table.current
            if not slot.has_index
        )
        return without_name + without_index

    def _run(self) -> None:
        while True:
            self._has_new.wait(_PERIOD_S)
            self._has_new.clear()
            if self._stopping.is_set():
                return
            try:
                self.update()
            except Exception:  # a defect must not end the thread: the next pass may succeed
                log.exception("cannot name the subjects of the ledger")


def _occupied_slots(totals: Totals | None) -> frozenset[int]:
    """Return the slots with threads, or with requests under way."""
    if totals is None:
        return frozenset()
    return frozenset(slot for slot, threads in enumerate(totals.threads) if threads > 0)
