"""Budget of the calls to the driver: it lowers the rate of queries that cost too much.

Each call takes the lock of the driver, so a monitor that calls too often delays the application
that it watches.  The cost of a query is the median of its last calls on a GPU.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from reveal_contract.time_units import NS_PER_SECOND

QUICK_NS, SLOW_NS, RARE_NS = NS_PER_SECOND // 10, NS_PER_SECOND, 10 * NS_PER_SECOND
MINUTE_NS = 60 * NS_PER_SECOND
PERIODS_NS = (QUICK_NS, SLOW_NS, RARE_NS, MINUTE_NS)
MAX_SHARE = 0.05  # of the time of one thread, for all GPUs and queries
LONG_CALL_NS = 5_000_000  # a query that takes longer is not sent ten times a second
_MAX_CALLS, _MIN_CALLS = 20, 5

Key = tuple[str, str]  # instance of the GPU, name of the query


@dataclass
class QueryMeter:
    """Period and recent costs of one query on one GPU."""

    desired_ns: int
    level: int  # index in PERIODS_NS
    costs_ns: deque[int] = field(default_factory=lambda: deque(maxlen=_MAX_CALLS))

    @property
    def is_measured(self) -> bool:
        """Whether it has had enough calls for a median."""
        return len(self.costs_ns) >= _MIN_CALLS

    @property
    def cost_ns(self) -> float:
        """The median cost of the last calls."""
        return sorted(self.costs_ns)[len(self.costs_ns) // 2] if self.costs_ns else 0.0

    @property
    def is_slowed(self) -> bool:
        """Whether the query is sent less often than desired."""
        return self.level > _level(self.desired_ns)

    def period_ns(self, level: int) -> int:
        """Return the period at a level."""
        return max(self.desired_ns, PERIODS_NS[level])

    def share(self, level: int) -> float:
        """Return the share of the time that the calls take at a level."""
        return self.cost_ns / self.period_ns(level)

    def slow_down(self) -> None:
        """Change to the next longer period."""
        self.level = min(self.level + 1, len(PERIODS_NS) - 1)


class QueryBudget:
    """Periods by query and GPU, so that all calls together take at most a share of the time."""

    def __init__(self, max_share: float = MAX_SHARE) -> None:
        self._max_share = max_share
        self._meters: dict[Key, QueryMeter] = {}

    @property
    def share(self) -> float:
        """The share of the time that all measured queries take at their current periods."""
        return sum(meter.share(meter.level) for meter in self._meters.values() if meter.is_measured)

    @property
    def slowed(self) -> list[str]:
        """One phrase for each query that is sent less often than desired."""
        return [
            f"GPU {key[0]}: {key[1]} is read every "
            f"{meter.period_ns(meter.level) / NS_PER_SECOND:g} s, "
            f"because a call takes {meter.cost_ns / 1000:.0f} us"
            for key, meter in self._meters.items()
            if meter.is_slowed
        ]

    def set_queries(self, keys: Iterable[tuple[Key, int]]) -> None:
        """Replace the queries by these, each with its desired period in ns; known costs stay."""
        previous = self._meters
        self._meters = {}
        for key, period_ns in keys:
            self._meters[key] = previous.get(key) or QueryMeter(period_ns, _level(period_ns))

    def period_ns(self, key: Key) -> int:
        """Return the current period of a query."""
        meter = self._meters[key]
        return meter.period_ns(meter.level)

    def record(self, key: Key, cost_ns: int) -> None:
        """Record the cost of one call."""
        self._meters[key].costs_ns.append(cost_ns)

    def review(self) -> bool:
        """Adapt the periods to the measured costs; return whether a period changed."""
        previous = [meter.level for meter in self._meters.values()]
        # A long call delays the other queries of the tick, even within the budget.
        for meter in self._meters.values():
            if meter.is_measured and meter.level == 0 and meter.cost_ns > LONG_CALL_NS:
                meter.slow_down()
        while self.share > self._max_share and (meters := self._most_expensive()):
            for meter in meters:
                meter.slow_down()
        self._speed_up()
        return previous != [meter.level for meter in self._meters.values()]

    def _most_expensive(self) -> list[QueryMeter]:
        """Return the meters, on all GPUs, of the query that takes the largest share.

        A query is slowed on all GPUs, so that their values stay comparable.
        """
        by_query: dict[str, list[QueryMeter]] = {}
        for (_, query), meter in self._meters.items():
            if meter.is_measured and meter.level < len(PERIODS_NS) - 1:
                by_query.setdefault(query, []).append(meter)
        return max(
            by_query.values(),
            key=lambda meters: sum(meter.share(meter.level) for meter in meters),
            default=[],
        )

    def _speed_up(self) -> None:
        """Shorten the period of queries that became cheaper.

        Half of the budget must stay free afterwards, so that periods do not alternate.
        """
        for meter in self._meters.values():
            if not meter.is_slowed or len(meter.costs_ns) < _MAX_CALLS:
                continue
            faster = meter.level - 1
            if faster == 0 and meter.cost_ns > LONG_CALL_NS / 2:
                continue
            if self.share - meter.share(meter.level) + meter.share(faster) < self._max_share / 2:
                meter.level = faster
                meter.costs_ns.clear()


def _level(period_ns: int) -> int:
    """Return the level of the longest period that is not longer than this one."""
    return max(level for level, each in enumerate(PERIODS_NS) if each <= period_ns)
