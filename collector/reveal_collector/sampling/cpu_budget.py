"""The collector's own CPU budget: what it used, and what gives way before it is broken.

One step at a time, each stated; a step is taken back after a minute of headroom, and after a
longer one where the budget was broken again right away.  Nothing here reads clocks or moves
sources: the collector tells what was used, the sampler puts sources into the lanes granted.

What names a subject gives way last, and never below once a second: a node that gets busy is
when it is asked for.  And use is judged over half a minute, which a fault's first seconds do not
break.  Where all gave way and the budget is broken still, that is said.
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
HEADROOM = 0.7  # of the budget: below it, the step taken last may fit again
IDLE_SLOWDOWN = 5  # how much less often an idle cgroup is looked at
# wide files whose numbers move little within ten seconds
_PATIENT = frozenset({"interrupts", "numa", "snmp6", "softnet"})
_PERIODS = {Lane.FAST: "ten times a second", Lane.SLOW: "every second", Lane.RARE: "every 10 s"}


class SourceCost(NamedTuple):
    """A source as the budget sees it; ``ns`` is what a second of its reads takes."""

    name: str
    lane: Lane
    ns: int
    scope: Scope = Scope.NODE
    spare: bool = False  # it can be done without


@dataclass(frozen=True)
class Saving:
    """What gives way: sources paused or in slower lanes, what is idle looked at less often."""

    said: str
    lanes: Mapping[str, Lane] = field(default_factory=dict)
    slowdown_factor: int = 1
    paused: frozenset[str] = frozenset()


@dataclass(frozen=True)
class BudgetState:
    """How many steps are taken, since when, and since when there has been headroom."""

    level: int = 0
    since_ns: int = 0
    calm_since_ns: int | None = None
    patience_ns: int = CALM_NS
    recovering: bool = False


def next_state(standing: BudgetState, use: float, now_ns: int) -> BudgetState:
    """The standing after a window in which ``use`` of the budget (1 is all) was used.

    ``use`` must be of a whole window since the last change.  A step that had to be taken again
    right after it was taken back doubles the patience before the next try.
    """
    if use > 1:
        patience = standing.patience_ns
        if standing.recovering:
            patience = min(2 * patience, LONGEST_CALM_NS)
        return BudgetState(standing.level + 1, now_ns, None, patience)
    if use > HEADROOM or not standing.level:
        settled = now_ns - standing.since_ns >= LONGEST_CALM_NS
        patience = CALM_NS if settled else standing.patience_ns
        return replace(standing, calm_since_ns=None, recovering=False, patience_ns=patience)
    calm_since = now_ns if standing.calm_since_ns is None else standing.calm_since_ns
    if now_ns - calm_since < standing.patience_ns:
        return replace(standing, calm_since_ns=calm_since, recovering=False)
    return BudgetState(standing.level - 1, now_ns, None, standing.patience_ns, recovering=True)


def next_saving(costs: Sequence[SourceCost], taken: Sequence[Saving]) -> Saving | None:
    """What should give way next, given what sources cost now; None where nothing is left.

    First what can be done without: it works in a thread of its own, and no read shows its price.
    """
    spare = sorted(cost.name for cost in costs if cost.spare)
    if spare and not any(step.paused for step in taken):
        return Saving(f"{_listed(spare)} {_are(spare)} paused", paused=frozenset(spare))
    subjects = any(cost.scope is Scope.SUBJECT for cost in costs)
    if subjects and not any(step.slowdown_factor > 1 for step in taken):
        idle = "idle cgroups, disks and networks"
        return Saving(
            f"{idle} are looked at {IDLE_SLOWDOWN} times less often", slowdown_factor=IDLE_SLOWDOWN
        )
    patient = [cost for cost in costs if cost.name in _PATIENT and cost.lane is Lane.SLOW]
    lasting = (cost for cost in costs if cost.lane is Lane.FAST and not cost.spare)
    fast = sorted(lasting, key=_last_to_go)
    for sources, lane in ((patient, Lane.RARE), (fast[:1], Lane.SLOW)):
        if sources:
            names = sorted(cost.name for cost in sources)
            return Saving(f"{_listed(names)} {_are(names)} read {_PERIODS[lane]} instead of "
                        f"{_PERIODS[sources[0].lane]}", dict.fromkeys(names, lane))  # fmt: skip
    return None


def _last_to_go(cost: SourceCost) -> tuple[bool, int]:
    return cost.scope is Scope.SUBJECT, -cost.ns


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _are(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"


class CpuBudget:
    """Keeps the budget of one collector; ``look`` is called about once a second."""

    def __init__(self, millicores: int) -> None:
        self.steps: list[Saving] = []
        self.use = 0.0  # of the budget, over the last whole window
        self.exhausted = False  # nothing is left to give way
        self._millicores = millicores
        self._standing = BudgetState()
        self._seen: deque[tuple[int, int]] = deque()

    def look(
        self, now_ns: int, cpu_ns: int, costs: Callable[[], Sequence[SourceCost]]
    ) -> Saving | None:
        """Take in the process's CPU time so far; gives the step just taken or taken back."""
        use = self._measured(now_ns, cpu_ns)
        if use is None:
            return None
        self.use = use
        standing = next_state(self._standing, use, now_ns)
        changed = self._follow(standing.level, costs)
        self.exhausted = use > 1 and changed is None
        if standing.level == self._standing.level or changed is not None:
            self._standing = standing
        if changed is not None:
            self._seen.clear()  # the next window is wholly after the change
        return changed

    @property
    def lanes(self) -> dict[str, Lane]:
        """The slowest lane granted to each source that gave way."""
        return {name: lane for step in self.steps for name, lane in step.lanes.items()}

    @property
    def slowdown_factor(self) -> int:
        return max((step.slowdown_factor for step in self.steps), default=1)

    @property
    def paused(self) -> frozenset[str]:
        return frozenset[str]().union(*(step.paused for step in self.steps))

    @property
    def said(self) -> list[str]:
        """What gave way, a sentence a step; last, whether that was not enough."""
        told = [step.said for step in self.steps]
        if self.exhausted:
            told.append(f"{self.use:.0%} of it is used, and nothing is left to give way")
        return [f"CPU budget of {self._millicores} millicores: {one}" for one in told]

    def _measured(self, now_ns: int, cpu_ns: int) -> float | None:
        """Share of the budget used over the last window; None while there is none."""
        self._seen.append((now_ns, cpu_ns))
        while len(self._seen) > 1 and now_ns - self._seen[1][0] >= WINDOW_NS:
            self._seen.popleft()
        began_ns, used_ns = self._seen[0]
        if now_ns - began_ns < WINDOW_NS:
            return None
        return (cpu_ns - used_ns) * 1000 / (now_ns - began_ns) / self._millicores

    def _follow(self, level: int, costs: Callable[[], Sequence[SourceCost]]) -> Saving | None:
        if level < len(self.steps):
            return self.steps.pop()
        if level > len(self.steps) and (step := next_saving(costs(), self.steps)) is not None:
            self.steps.append(step)
            return step
        return None
