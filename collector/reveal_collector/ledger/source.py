"""Source: the lost-time ledger, by the best means that the host permits."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from reveal_collector import native
from reveal_collector.devices.cpu_topology import cpu_list
from reveal_collector.kernel_interfaces.errors import LayoutChanged, Unsupported
from reveal_collector.ledger.accounts import FIXED, Interval, is_plausible
from reveal_collector.ledger.channels import DisplayedSubjects
from reveal_collector.ledger.guard import LIMIT, CostGuard
from reveal_collector.ledger.names import CgroupKeys, GroupKeys, GroupName, ProcessNames
from reveal_collector.ledger.naming import Naming, Observed
from reveal_collector.ledger.permits import check_host, refusal, sees_host_pids
from reveal_collector.ledger.programs import Extent, Programs, Totals
from reveal_collector.ledger.shares import ShareReader
from reveal_collector.readers.source import Roots
from reveal_collector.readers.textfile import channel
from reveal_collector.subjects.tracker import SubjectTracker
from reveal_contract import ledger
from reveal_contract.channels import Channel
from reveal_contract.cpu_shares import EQUAL_SHARES, CpuShares
from reveal_contract.ledger import RESOLUTION_NS, Tier
from reveal_contract.metric import Lane
from reveal_contract.subjects import Identity

log = logging.getLogger(__name__)

_OWN = {ledger.TIER: 1.0, ledger.MISSED: 1.0, ledger.FOLDED: 1.0, ledger.COST: RESOLUTION_NS}


class Ledger:
    """Parts of the time of subjects, and pairs of who lost time to whom, once a second.

    BPF programs count.  They are detached when this is closed, when the process ends, and when
    they cost more than 1 % of the host.
    """

    name, lane = ledger.SOURCE, Lane.SLOW
    health_error = ""

    def __init__(
        self,
        roots: Roots,
        tracker: SubjectTracker,
        group_name: GroupName,
        guard: Callable[[int], CostGuard] = CostGuard,
    ) -> None:
        self.channels: tuple[Channel, ...] = ()
        self.degraded: Sequence[str] = ()
        self._roots, self._tracker, self._group_name = roots, tracker, group_name
        self._programs: Programs | None = None
        self._naming: Naming | None = None
        self._displayed = DisplayedSubjects()
        self._new_guard, self._guard = guard, guard(1)
        self._observed = Observed()
        self._last: Totals | None = None
        self._has_unread_pass = False

    @property
    def subjects(self) -> tuple[Identity, ...]:
        """The identities of subjects that only the ledger shows."""
        known = {identity.instance for identity in self._tracker.identities}
        displayed = {column.instance for column in self.channels} - known
        return tuple(
            each.identity
            for each in self._tracker.candidates
            if each.identity.instance in displayed
        )

    @property
    def shares(self) -> CpuShares:
        """What the displayed subjects are entitled to."""
        naming = self._naming
        return EQUAL_SHARES if naming is None else naming.shares.of(self._displayed.names)

    def open(self) -> None:
        """Load and attach the programs; raises ``Unsupported`` where the host does not permit."""
        if not self._tracker.selection.limit:
            raise Unsupported("maxSubjects is 0: no subject is counted separately")
        library = check_host(self._roots, native.load().library)
        cpus = 1 + max(cpu_list((self._roots.sys / "devices/system/cpu/possible").read_text()))
        cgroups = CgroupKeys(self._tracker.trees)
        try:
            programs = Programs(library, cpus, cgroups.hierarchy, cgroups.root)
        except OSError as error:
            raise refusal(error) from None
        self._programs = programs
        self._tracker.start()
        self._displayed, self._guard = DisplayedSubjects(), self._new_guard(cpus)
        self.degraded = ()
        self._observed, self._last = Observed(), None
        names = ProcessNames(self._roots.proc, self._group_name)
        groups = GroupKeys(names) if sees_host_pids(self._roots.proc) else None
        shares = ShareReader(self._tracker.trees, self._roots.proc)
        self._naming = Naming(
            programs, self._tracker, cgroups, groups, shares, lambda: self._observed
        )
        self.channels = (*_own_channels(), *self._displayed.channels)
        try:
            self._naming.start()
            programs.attach()
        except OSError as error:
            self.close()
            raise refusal(error) from None

    def read(self) -> Sequence[int | None]:
        """Return the counters; none in a second whose totals cannot be read."""
        if self._has_unread_pass:
            self._has_unread_pass = False
        elif not self._advance():
            return self._own_values() + [None] * (len(self.channels) - len(_OWN))
        elif self.channels[len(_OWN) :] != self._displayed.channels:
            self.channels = (*_own_channels(), *self._displayed.channels)
            self._has_unread_pass = True
            raise LayoutChanged(self.name)
        return self._own_values() + self._displayed.values()

    def close(self) -> None:
        """Detach the programs."""
        if self._naming is not None:
            self._naming.stop()
            self._tracker.stop()
        if self._programs is not None:
            self._programs.close()
        self._naming = self._programs = None
        self.channels, self._has_unread_pass = (), False

    def _advance(self) -> bool:
        """Account what happened since the last reading; return whether there are values."""
        if self._programs is None or self._naming is None:
            return False
        # those of before the reading: a slot of a later one may not be in the extent
        slots, extent = self._naming.table.current, Extent(*self._naming.table.extent)
        try:
            totals = self._programs.read(extent)
        except BlockingIOError:
            return False
        before, everybody = self._last, (*FIXED, *slots)
        if before is not None and not is_plausible(before, totals, everybody):
            log.debug("the totals of the ledger are implausible")
            return False
        self._last = totals
        if before is not None:
            self._displayed.update(Interval(before, totals, slots), slots, time.monotonic())
        self._observed = Observed(totals, self._displayed.uses)
        if self._guard.is_exceeded(totals.now, totals.cost):
            self._detach()
        return before is not None

    def _detach(self) -> None:
        """Stop to count, as it costs too much; the columns stay, without values."""
        text = (
            f"the lost-time ledger is off: it took {self._guard.share:.1%} of the CPUs, "
            f"more than {LIMIT:.0%}"
        )
        log.warning("%s", text)
        self.degraded = (text,)
        if self._naming is not None:
            self._naming.stop()
        if self._programs is not None:
            self._programs.close()
        self._programs = None

    def _own_values(self) -> list[int | None]:
        if self._programs is None or self._naming is None or self._last is None:
            return [None] * len(_OWN)
        return [
            Tier.BPF, self._last.missed, self._naming.folded, self._last.cost // RESOLUTION_NS
        ]  # fmt: skip


def _own_channels() -> tuple[Channel, ...]:
    return tuple(channel(metric, "", scale) for metric, scale in _OWN.items())
