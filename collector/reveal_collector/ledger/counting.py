"""The programs of the ledger while they count, and the thread that names their subjects."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from reveal_collector.ledger.accounts import FIXED, Interval
from reveal_collector.ledger.channels import DisplayedSubjects
from reveal_collector.ledger.disk_latency import AloneLatencies
from reveal_collector.ledger.guard import CostGuard
from reveal_collector.ledger.naming import Naming, Observed
from reveal_collector.ledger.programs import Extent, Programs, Totals

log = logging.getLogger(__name__)


class Counting:
    """Loaded programs with their subjects and their budget."""

    def __init__(
        self,
        programs: Programs,
        naming: Callable[[Callable[[], Observed]], Naming],
        guard: CostGuard,
    ) -> None:
        self.last: Totals | None = None
        self.is_too_costly = False
        self.naming = naming(lambda: self._observed)
        self._observed = Observed()
        self._programs, self._guard = programs, guard
        self._alone = AloneLatencies()

    @property
    def share(self) -> float:
        """The part of the CPU time of the host that the programs took."""
        return self._guard.share

    def start(self) -> None:
        """Name the subjects and attach the programs; raises ``OSError``."""
        self.naming.start()
        self._programs.attach()

    def stop(self) -> None:
        """Detach the programs."""
        self.naming.stop()
        self._programs.close()

    def advance(self, displayed: DisplayedSubjects) -> bool:
        """Account what happened since the last reading; return whether there are values."""
        # those of before the reading: a slot of a later one may not be in the extent
        slots, extent = self.naming.table.current, Extent(*self.naming.table.extent)
        try:
            totals = self._programs.read(extent)
        except BlockingIOError:
            return False
        before = self.last
        interval = None if before is None else Interval(before, totals, slots, self._alone)
        if interval is not None and not interval.is_plausible:
            log.debug("the totals of the ledger are implausible")
            return False
        self.last = totals
        if interval is not None:
            displayed.update(interval, slots, time.monotonic())
            names = {slot.name for slot in (*FIXED, *slots)}
            self._alone.learn(interval.requests, names, interval.elapsed_ns)
        self._observed = Observed(totals, displayed.uses)
        self.is_too_costly = self._guard.is_exceeded(totals.now, totals.cost)
        return interval is not None
