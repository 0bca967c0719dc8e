"""What asking the driver may cost, and what is asked less often when it costs more.

Every call takes the driver's lock: asked too often, a monitor holds up the application it
watches.  The price of each query is the median of its last calls on that GPU.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from reveal_contract.time_units import NS_PER_SECOND

QUICK_NS, SLOW_NS, RARE_NS = NS_PER_SECOND // 10, NS_PER_SECOND, 10 * NS_PER_SECOND
PERIODS_NS = (QUICK_NS, SLOW_NS, RARE_NS, 60 * NS_PER_SECOND)
SHARE = 0.05  # of one thread's time, all GPUs and queries together
LONG_NS = 5_000_000  # a query this long is never asked ten times a second
_CALLS, _LEAST_CALLS = 20, 5

Key = tuple[str, str]  # instance of the GPU, name of the query


@dataclass
class Meter:
    """One query on one GPU: how often it is asked and what it cost lately (ns)."""

    wanted_ns: int
    level: int  # place in PERIODS_NS
    costs: deque[int] = field(default_factory=lambda: deque(maxlen=_CALLS))

    @property
    def known(self) -> bool:
        return len(self.costs) >= _LEAST_CALLS

    @property
    def price_ns(self) -> float:
        return sorted(self.costs)[len(self.costs) // 2] if self.costs else 0.0

    @property
    def slowed(self) -> bool:
        return self.level > _level(self.wanted_ns)

    def period_ns(self, level: int) -> int:
        return max(self.wanted_ns, PERIODS_NS[level])

    def share(self, level: int) -> float:
        """The share of the time its calls take when asked at this level."""
        return self.price_ns / self.period_ns(level)

    def slow_down(self) -> None:
        self.level = min(self.level + 1, len(PERIODS_NS) - 1)


class Budget:
    """Periods by query and GPU, kept so that all calls together take ``share`` of the time."""

    def __init__(self, share: float = SHARE) -> None:
        self._most = share
        self._meters: dict[Key, Meter] = {}

    @property
    def share(self) -> float:
        """The share of the time that calls of known price take at the present periods."""
        return sum(meter.share(meter.level) for meter in self._meters.values() if meter.known)

    @property
    def slowed(self) -> list[str]:
        """What is asked less often than wanted, one phrase each."""
        return [
            f"GPU {key[0]}: {key[1]} is asked every "
            f"{meter.period_ns(meter.level) / NS_PER_SECOND:g} s, "
            f"as a call takes {meter.price_ns / 1000:.0f} us"
            for key, meter in self._meters.items()
            if meter.slowed
        ]

    def keep(self, keys: Iterable[tuple[Key, int]]) -> None:
        """These are the queries now, with the period (ns) wanted of each."""
        before = self._meters
        self._meters = {}
        for key, period_ns in keys:
            self._meters[key] = before.get(key) or Meter(period_ns, _level(period_ns))

    def period_ns(self, key: Key) -> int:
        meter = self._meters[key]
        return meter.period_ns(meter.level)

    def spent(self, key: Key, cost_ns: int) -> None:
        self._meters[key].costs.append(cost_ns)

    def review(self) -> bool:
        """Slow down what is too dear, quicken what has become cheap; whether anything changed."""
        before = [meter.level for meter in self._meters.values()]
        for meter in self._meters.values():
            if meter.known and meter.level == 0 and meter.price_ns > LONG_NS:
                meter.slow_down()
        while self.share > self._most and (dearest := self._dearest()):
            for meter in dearest:
                meter.slow_down()
        self._quicken()
        return before != [meter.level for meter in self._meters.values()]

    def _dearest(self) -> list[Meter]:
        """The query that takes most over all GPUs: slowed on each, so that they stay alike."""
        by_query: dict[str, list[Meter]] = {}
        for (_, query), meter in self._meters.items():
            if meter.known and meter.level < len(PERIODS_NS) - 1:
                by_query.setdefault(query, []).append(meter)
        return max(
            by_query.values(),
            key=lambda meters: sum(meter.share(meter.level) for meter in meters),
            default=[],
        )

    def _quicken(self) -> None:
        """One step back for what would leave half of the budget free: no to and fro."""
        for meter in self._meters.values():
            if not meter.slowed or len(meter.costs) < _CALLS:
                continue
            faster = meter.level - 1
            if faster == 0 and meter.price_ns > LONG_NS / 2:
                continue
            if self.share - meter.share(meter.level) + meter.share(faster) < self._most / 2:
                meter.level = faster
                meter.costs.clear()


def _level(period_ns: int) -> int:
    """The slowest of the periods that is not slower than this one."""
    return max(at for at, each in enumerate(PERIODS_NS) if each <= period_ns)
