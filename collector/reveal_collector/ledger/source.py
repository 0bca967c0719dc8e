"""Source: the lost-time ledger, by the best means that the host permits."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from functools import partial

from reveal_collector import native
from reveal_collector.devices.cpu_topology import cpu_list
from reveal_collector.kernel_interfaces.errors import LayoutChanged, Unsupported
from reveal_collector.ledger.channels import DisplayedSubjects
from reveal_collector.ledger.counting import Counting
from reveal_collector.ledger.guard import LIMIT, CostGuard, Pause
from reveal_collector.ledger.names import CgroupKeys, GroupKeys, GroupName, ProcessNames
from reveal_collector.ledger.naming import Naming
from reveal_collector.ledger.permits import check_host, refusal, sees_host_pids
from reveal_collector.ledger.programs import Programs
from reveal_collector.ledger.reload import Reload
from reveal_collector.ledger.shares import ShareReader
from reveal_collector.readers.source import Roots
from reveal_collector.readers.textfile import channel
from reveal_collector.subjects.cgroup_files import requests_root
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

    BPF programs count.  They are detached when this is closed, when the process ends, and for a
    while when they cost more than 1 % of the host.
    """

    name, lane = ledger.SOURCE, Lane.SLOW
    keeps_lane = True  # its parts are those of a second; its own budget bounds its cost
    health_error = ""

    def __init__(
        self,
        roots: Roots,
        tracker: SubjectTracker,
        group_name: GroupName,
        guard: Callable[[int], CostGuard] = CostGuard,
        pause: Callable[[], Pause] = Pause,
    ) -> None:
        self.channels: tuple[Channel, ...] = ()
        self.degraded: Sequence[str] = ()
        self._roots, self._tracker, self._group_name = roots, tracker, group_name
        self._new_guard, self._new_pause = guard, pause
        self._counting: Counting | None = None
        self._reload: Reload | None = None
        self._pause = pause()
        self._displayed = DisplayedSubjects()
        self._has_unread_pass = False

    @property
    def subjects(self) -> tuple[Identity, ...]:
        """The identities of subjects that only the ledger shows."""
        return self._tracker.unselected({column.instance for column in self.channels})

    @property
    def shares(self) -> CpuShares:
        """What the displayed subjects are entitled to."""
        counting = self._counting
        if counting is None:
            return EQUAL_SHARES
        return counting.naming.shares.of(self._displayed.names)

    def open(self) -> None:
        """Load and attach the programs; raises ``Unsupported`` where the host does not permit."""
        if not self._tracker.selection.limit:
            raise Unsupported("maxSubjects is 0: no subject is counted separately")
        self._displayed, self._pause = DisplayedSubjects(), self._new_pause()
        self.degraded = ()
        self._tracker.start()
        try:
            self._counting = self._load()
        except Unsupported:
            self._tracker.stop()
            raise
        self.channels = (*_own_channels(), *self._displayed.channels)

    def _load(self) -> Counting:
        """Return programs that are loaded and attached; raises ``Unsupported``."""
        library = check_host(self._roots, native.load().library)
        cpus = 1 + max(cpu_list((self._roots.sys / "devices/system/cpu/possible").read_text()))
        cgroups = CgroupKeys(self._tracker.trees, requests_root(self._roots.cgroup))
        try:
            programs = Programs(library, cpus, cgroups.hierarchy, cgroups.root)
        except OSError as error:
            raise refusal(error) from None
        names = ProcessNames(self._roots.proc, self._group_name)
        groups = GroupKeys(names) if sees_host_pids(self._roots.proc) else None
        shares = ShareReader(self._tracker.trees, self._roots.proc)
        naming = partial(Naming, programs, self._tracker, cgroups, groups, shares)
        counting = Counting(programs, naming, self._new_guard(cpus))
        try:
            counting.start()
        except OSError as error:
            counting.stop()
            raise refusal(error) from None
        return counting

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
        if self._counting is not None or self._reload is not None:
            self._tracker.stop()
        for each in (self._counting, self._reload):
            if each is not None:
                each.stop()
        self._counting = self._reload = None
        self.channels, self._has_unread_pass = (), False

    def _advance(self) -> bool:
        """Account what happened since the last reading; return whether there are values."""
        if self._reload is not None:
            self._resume(self._reload)
        if self._counting is None:
            return False
        has_values = self._counting.advance(self._displayed)
        if self._counting.is_too_costly:
            self._detach(self._counting)
        return has_values

    def _detach(self, counting: Counting) -> None:
        """Stop to count for a while, as it costs too much; the columns stay, without values."""
        counting.stop()
        self._counting = None
        seconds = self._pause.begin(time.monotonic())
        text = (
            f"the lost-time ledger is off for {seconds:.0f} s: it took {counting.share:.1%} of the "
            f"CPUs, more than {LIMIT:.0%}"
        )
        log.warning("%s", text)
        self.degraded = (text,)
        self._reload = Reload(seconds, self._load)

    def _resume(self, reload: Reload) -> None:
        """Count again once the pause is over and the programs are loaded."""
        self._counting = reload.take()
        if self._counting is not None:
            self._reload, self.degraded = None, ()
            log.info("the lost-time ledger is on again")
        elif reload.has_failed:
            self._reload = Reload(self._pause.begin(time.monotonic()), self._load)

    def _own_values(self) -> list[int | None]:
        counting = self._counting
        if counting is None or counting.last is None:
            return [None] * len(_OWN)
        cost = counting.last.cost // RESOLUTION_NS
        return [Tier.BPF, counting.last.missed, counting.naming.folded, cost]


def _own_channels() -> tuple[Channel, ...]:
    return tuple(channel(metric, "", scale) for metric, scale in _OWN.items())
