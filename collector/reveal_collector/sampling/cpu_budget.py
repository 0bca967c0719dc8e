"""The collector's own CPU budget: what it used, and what it reduces to keep the budget.

The budget takes one saving at a time and reports each.  It reverts the last saving after a
minute of headroom, and then one more after each window in which there still is headroom.  It waits
longer where the collector exceeded the budget again right after a saving was reverted.  This module
neither reads clocks nor moves sources: the collector passes the CPU time used, and the sampler
moves sources into the lanes that the budget allows.

Sources that name subjects are paused or slowed last, and are read at least once a second: findings
need them most on a busy node, and without their fine clocks no step time of a job is known.  The
use is averaged over half a minute, so that the first seconds of a fault do not exceed the budget.
The budget reports when it is exceeded and no saving is left.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from reveal_contract.metric import Lane, Scope

WINDOW_NS = 30_000_000_000
CALM_NS = 60_000_000_000
LONGEST_CALM_NS = 16 * CALM_NS
HEADROOM = 0.7  # share of the budget: below it, the last saving may be unnecessary
IDLE_SLOWDOWN = 5  # how many times less often idle cgroups, disks and networks are read
# sources of wide files whose numbers change little within ten seconds
_SLOWLY_CHANGING = frozenset({"interrupts", "numa", "snmp6", "softnet"})
_PERIODS = {Lane.FAST: "ten times a second", Lane.SLOW: "every second", Lane.RARE: "every 10 s"}


class SourceCost(NamedTuple):
    """CPU cost of one source; ``ns`` is the time that its reads take in a second."""

    name: str
    lane: Lane
    ns: int
    scope: Scope = Scope.NODE
    optional: bool = False  # the source can be paused


@dataclass(frozen=True)
class Saving:
    """One reduction: sources paused, moved to slower lanes, or idle files read less often."""

    message: str
    lanes: Mapping[str, Lane] = field(default_factory=dict)
    slowdown_factor: int = 1
    paused: frozenset[str] = frozenset()


@dataclass(frozen=True)
class BudgetState:
    """How many savings are in effect, since when, and since when there is headroom.

    ``patience_ns`` is the length of headroom before a saving is reverted.  ``reverting`` is set
    while the last change was a reverted saving.
    """

    level: int = 0
    since_ns: int = 0
    headroom_since_ns: int | None = None
    patience_ns: int = CALM_NS
    reverting: bool = False


def next_state(state: BudgetState, use: float, now_ns: int) -> BudgetState:
    """Return the state after a window that used the share ``use`` of the budget (1 is all).

    The window must begin after the last change of the level.
    """
    if use > 1:
        return _exceeded(state, now_ns)
    if use > HEADROOM or not state.level:
        return _kept(state, now_ns)
    return _headroom(state, now_ns)


def _exceeded(state: BudgetState, now_ns: int) -> BudgetState:
    """Take one more saving."""
    patience = state.patience_ns
    # The load fits only with this saving: wait twice as long before it is reverted again, so
    # that the saving does not alternate.
    if state.reverting:
        patience = min(2 * patience, LONGEST_CALM_NS)
    return BudgetState(state.level + 1, now_ns, None, patience)


def _kept(state: BudgetState, now_ns: int) -> BudgetState:
    """Keep the level: the budget holds, but there is no headroom or nothing to revert."""
    # A level that held this long says nothing about earlier alternations any more.
    settled = now_ns - state.since_ns >= LONGEST_CALM_NS
    patience = CALM_NS if settled else state.patience_ns
    return replace(state, headroom_since_ns=None, reverting=False, patience_ns=patience)


def _headroom(state: BudgetState, now_ns: int) -> BudgetState:
    """Revert the last saving once there was headroom for ``patience_ns``.

    If there is headroom after a saving was reverted, the next one is reverted at once: the use is
    that of a whole window since then.
    """
    since = now_ns if state.headroom_since_ns is None else state.headroom_since_ns
    if now_ns - since < state.patience_ns and not state.reverting:
        return replace(state, headroom_since_ns=since, reverting=False)
    return BudgetState(state.level - 1, now_ns, None, state.patience_ns, reverting=True)


def next_saving(costs: Sequence[SourceCost], taken: Sequence[Saving]) -> Saving | None:
    """Return the saving that costs the least insight now, or None where none is left."""
    of_subjects = [cost for cost in costs if cost.scope is Scope.SUBJECT]
    return (
        _slow_idle(costs, taken)
        or _slow_to_rare(costs)
        or _slow_fast([cost for cost in costs if cost.scope is not Scope.SUBJECT])
        or _pause_optional(costs, taken)
        or _slow_fast(of_subjects)
    )


def _pause_optional(costs: Sequence[SourceCost], taken: Sequence[Saving]) -> Saving | None:
    """Pause all optional sources: they have threads of their own, so no read shows their cost."""
    names = sorted(cost.name for cost in costs if cost.optional)
    if not names or any(saving.paused for saving in taken):
        return None
    return Saving(f"{_listed(names)} {_are(names)} paused", paused=frozenset(names))


def _slow_idle(costs: Sequence[SourceCost], taken: Sequence[Saving]) -> Saving | None:
    """Read idle subjects less often: their counters hardly change."""
    subjects = any(cost.scope is Scope.SUBJECT for cost in costs)
    if not subjects or any(saving.slowdown_factor > 1 for saving in taken):
        return None
    return Saving(
        f"idle cgroups, disks and networks are read {IDLE_SLOWDOWN} times less often",
        slowdown_factor=IDLE_SLOWDOWN,
    )


def _slow_to_rare(costs: Sequence[SourceCost]) -> Saving | None:
    """Move wide, slowly changing sources from every second to every ten seconds."""
    return _moved(
        [cost for cost in costs if cost.name in _SLOWLY_CHANGING and cost.lane is Lane.SLOW],
        Lane.RARE,
    )


def _slow_fast(costs: Sequence[SourceCost]) -> Saving | None:
    """Move the most expensive of these fast sources to once a second."""
    fast = (cost for cost in costs if cost.lane is Lane.FAST and not cost.optional)
    return _moved(sorted(fast, key=lambda cost: -cost.ns)[:1], Lane.SLOW)


def _moved(costs: Sequence[SourceCost], lane: Lane) -> Saving | None:
    if not costs:
        return None
    names = sorted(cost.name for cost in costs)
    message = (
        f"{_listed(names)} {_are(names)} read {_PERIODS[lane]} instead of {_PERIODS[costs[0].lane]}"
    )
    return Saving(message, dict.fromkeys(names, lane))


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _are(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"


class CpuBudget:
    """Keeps the budget of one collector; ``update`` is called about once a second."""

    def __init__(self, millicores: int) -> None:
        self.savings: list[Saving] = []
        self.use = 0.0  # share of the budget used over the last whole window
        self.exhausted = False  # the budget is exceeded and no saving is left
        self._millicores = millicores
        self._state = BudgetState()
        self._samples: deque[tuple[int, int]] = deque()  # (time, CPU time used so far), ns

    def update(
        self, now_ns: int, cpu_ns: int, costs: Callable[[], Sequence[SourceCost]]
    ) -> Saving | None:
        """Record the CPU time used so far; return the saving just taken or reverted, if any."""
        use = self._window_use(now_ns, cpu_ns)
        if use is None:
            return None
        self.use = use
        state = next_state(self._state, use, now_ns)
        changed = self._apply_level(state.level, costs)
        self.exhausted = use > 1 and changed is None
        # without a saving left the level stays: there would be nothing to revert
        if state.level == self._state.level or changed is not None:
            self._state = state
        if changed is not None:
            self._samples.clear()  # the next window must begin after the change
        return changed

    @property
    def lanes(self) -> dict[str, Lane]:
        """The fastest lane allowed to each source that was slowed."""
        return {name: lane for saving in self.savings for name, lane in saving.lanes.items()}

    @property
    def slowdown_factor(self) -> int:
        """How many times less often idle files are read; 1 for the normal rate."""
        return max((saving.slowdown_factor for saving in self.savings), default=1)

    @property
    def paused(self) -> frozenset[str]:
        """Names of the paused sources."""
        return frozenset[str]().union(*(saving.paused for saving in self.savings))

    @property
    def messages(self) -> list[str]:
        """One sentence for each saving in effect; the last one says if they do not suffice."""
        messages = [saving.message for saving in self.savings]
        if self.exhausted:
            messages.append(f"{self.use:.0%} of it is used, and nothing is left to reduce")
        return [f"CPU budget of {self._millicores} millicores: {each}" for each in messages]

    def _window_use(self, now_ns: int, cpu_ns: int) -> float | None:
        """Return the share of the budget used over the last window; None while it is too short."""
        self._samples.append((now_ns, cpu_ns))
        while len(self._samples) > 1 and now_ns - self._samples[1][0] >= WINDOW_NS:
            self._samples.popleft()
        began_ns, used_ns = self._samples[0]
        if now_ns - began_ns < WINDOW_NS:
            return None
        return (cpu_ns - used_ns) * 1000 / (now_ns - began_ns) / self._millicores

    def _apply_level(self, level: int, costs: Callable[[], Sequence[SourceCost]]) -> Saving | None:
        if level < len(self.savings):
            return self.savings.pop()
        # the costs are asked for only here: they are computed from all sources
        if level > len(self.savings) and (saving := next_saving(costs(), self.savings)) is not None:
            self.savings.append(saving)
            return saving
        return None
