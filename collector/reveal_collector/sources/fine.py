"""Source: the CPU clock of busy subjects at 50 Hz, five sub-samples a tick.

Work that repeats faster than every 200 ms shows at 10 Hz as a slow rhythm it does not have.  A
thread reads one file a busy subject every 20 ms on a grid; the tick thread takes what the five
grid steps before the last one used.  A column is one of the five: ``subject#1`` to ``#5``.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from reveal_collector.realtime import prefer_real_time
from reveal_collector.source import LayoutChanged, Unsupported
from reveal_collector.sources.cgroups import FILES, CgroupFile
from reveal_collector.sources.tenants import Tenant, Tenants
from reveal_collector.textfile import KeptFile, channel
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane

log = logging.getLogger(__name__)

STEP_NS = 20_000_000
A_TICK = 5
MOST = 16
_RING = 64
_TICKS = 10
_BUSY, _IDLE = 0.05, 0.02  # of a CPU: to come in, and to stay
_STAY_SECONDS = 30
_NS_PER_US = 1000
_METRIC = "cpu.subject.usage.fine"
# Of the collector's budget of CPU time; the thread's own clock tells what it takes.
_SHARE = 0.5
_JUDGED_SECONDS = 10.0


class Clock:
    """The CPU clock of one cgroup and its last readings on the grid, in us."""

    def __init__(self, tenant: Tenant, trees: Mapping[str, Path]) -> None:
        self.tenant = tenant
        self._steps = [-1] * _RING
        self._used = [0] * _RING
        for file in FILES:
            if file.metrics[0] == "cpu.subject.usage" and file.hierarchy in trees:
                self._file: CgroupFile = file
                self._kept = KeptFile(trees[file.hierarchy] / tenant.path[1:] / file.names[0])
                self._kept.open()
                return
        raise Unsupported("this host counts no CPU time by cgroup")

    def read(self, step: int) -> None:
        """Take the reading of a grid step; one that fails is missing."""
        try:
            value = self._file.parse(self._kept.read())[0]
        except (OSError, ValueError):
            return
        if value is not None:
            at = step % _RING
            self._used[at] = int(value * self._file.scale(0)) // _NS_PER_US
            self._steps[at] = step

    def used(self, step: int) -> int | None:
        """CPU time from the step before to this one; ``None`` where one was not read."""
        at, before = step % _RING, (step - 1) % _RING
        if self._steps[at] != step or self._steps[before] != step - 1:
            return None
        return max(0, self._used[at] - self._used[before])

    def close(self) -> None:
        self._kept.close()


class Chooser:
    """Which subjects are busy enough; one that is in stays a while after it went idle."""

    def __init__(self) -> None:
        self._last: dict[Tenant, int] = {}
        self._busy_at: dict[Tenant, float] = {}

    def choose(self, clocks: Mapping[Tenant, int], now: float, seconds: float) -> list[Tenant]:
        """From CPU clocks in ns and the time since the last call: up to ``MOST``, busiest first."""
        rates = {
            tenant: (clock - self._last[tenant]) / (seconds * 1e9)
            for tenant, clock in clocks.items()
            if tenant in self._last
        }
        self._last = dict(clocks)
        for tenant, rate in rates.items():
            if rate >= (_IDLE if tenant in self._busy_at else _BUSY):
                self._busy_at[tenant] = now
        self._busy_at = {
            tenant: at for tenant, at in self._busy_at.items()
            if tenant in clocks and now - at < _STAY_SECONDS
        }  # fmt: skip
        return sorted(self._busy_at, key=lambda one: (-rates.get(one, 0.0), one.path))[:MOST]


class FineLane:
    """``cpu.subject.usage.fine`` of the busy subjects, in us; the thread sleeps while none is."""

    name, lane = "subject-fine", Lane.FAST

    def __init__(self, tenants: Tenants, budget_millicores: int) -> None:
        self.channels: tuple[Channel, ...] = ()
        self.trouble = ""
        self._tenants = tenants
        self._most_ns = _SHARE * budget_millicores * 1e6  # of CPU time a second
        self._chooser = Chooser()
        self._clocks: tuple[Clock, ...] = ()
        self._ticks = 0
        self._looked = 0.0
        self._wanted = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def open(self) -> None:
        if not self._tenants.trees:
            raise Unsupported("no cgroup hierarchy is mounted", "mount cgroup2, or pass its root")
        self._tenants.start()
        self._stopping.clear()
        self._thread = threading.Thread(target=self._run, name="reveal-fine", daemon=True)
        self._thread.start()

    def read(self) -> Sequence[int | None]:
        self._ticks += 1
        if self._ticks % _TICKS == 0 and self._choose():
            raise LayoutChanged(self.name)
        last = time.monotonic_ns() // STEP_NS - 1  # the one before may still be under way
        steps = range(last - A_TICK + 1, last + 1)
        return [clock.used(step) for clock in self._clocks for step in steps]

    def close(self) -> None:
        if self._thread is None:
            return
        self._stopping.set()
        self._wanted.set()
        self._thread.join(1.0)
        self._thread = None
        self._tenants.stop()
        for clock in self._clocks:
            clock.close()
        self._clocks, self.channels = (), ()

    def _choose(self) -> bool:
        """Whether other subjects are followed now."""
        now = time.monotonic()
        seconds, self._looked = max(now - self._looked, 0.1), now
        busy = self._chooser.choose(self._tenants.clocks.copy(), now, seconds)
        wanted = set() if self.trouble else set(busy)
        known = {clock.tenant: clock for clock in self._clocks}
        if wanted == known.keys():
            return False
        kept = [known[one] for one in known if one in wanted]
        self._clocks = (*kept, *self._opened(wanted - known.keys()))
        for tenant in known.keys() - wanted:
            known[tenant].close()
        self.channels = tuple(
            channel(_METRIC, f"{clock.tenant.instance}#{place}", _NS_PER_US)
            for clock in self._clocks
            for place in range(1, A_TICK + 1)
        )
        (self._wanted.set if self._clocks else self._wanted.clear)()
        return True

    def _opened(self, tenants: set[Tenant]) -> list[Clock]:
        made = []
        for tenant in sorted(tenants, key=lambda one: one.path):
            try:
                made.append(Clock(tenant, self._tenants.trees))
            except Unsupported:  # gone meanwhile
                continue
        return made

    def _run(self) -> None:
        prefer_real_time()
        while not self._stopping.is_set():
            self._wanted.wait()
            began, spent = time.monotonic(), time.thread_time_ns()
            while self._clocks and not self._stopping.is_set():
                self._sample()
                if time.monotonic() - began >= _JUDGED_SECONDS:
                    self._judge((time.thread_time_ns() - spent) / (time.monotonic() - began))
                    began, spent = time.monotonic(), time.thread_time_ns()

    def _sample(self) -> None:
        """Sleep to the next step of the grid and read every clock."""
        step = time.monotonic_ns() // STEP_NS + 1
        time.sleep(max(0, step * STEP_NS - time.monotonic_ns()) / 1e9)
        for clock in self._clocks:
            clock.read(step)

    def _judge(self, cost_ns: float) -> None:
        """Give up where the lane takes more than its share of the budget (ns a second)."""
        if cost_ns > self._most_ns:
            self.trouble = (
                f"{self.name}: off, it takes {cost_ns / 1e7:.2f} % of a CPU;"
                " a larger cpuBudgetMillicores allows it"
            )
            log.warning("%s", self.trouble)
