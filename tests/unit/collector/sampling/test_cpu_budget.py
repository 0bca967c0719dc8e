"""The CPU budget: what gives way, in which order, and when it comes back."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from reveal_collector.sampling.cpu_budget import (
    CALM_NS,
    LONGEST_CALM_NS,
    WINDOW_NS,
    BudgetState,
    CpuBudget,
    SourceCost,
    next_saving,
    next_state,
)
from reveal_contract.metric import Lane, Scope

SECOND = 1_000_000_000
STEP = WINDOW_NS // SECOND + 1  # seconds until a step is taken
COSTS = [
    SourceCost("stat", Lane.FAST, 300),
    SourceCost("vmstat", Lane.FAST, 900),
    SourceCost("cgroup-cpu", Lane.FAST, 500, Scope.SUBJECT),
    SourceCost("subject-fine", Lane.FAST, 5, Scope.SUBJECT, spare=True),
    SourceCost("cgroups", Lane.SLOW, 700, Scope.SUBJECT),
    SourceCost("snmp6", Lane.SLOW, 40),
    SourceCost("interrupts", Lane.SLOW, 90),
    SourceCost("loadavg", Lane.SLOW, 3),
    SourceCost("filesystems", Lane.RARE, 3),
]


class Host:
    """A collector whose CPU use is what the sources in their lanes cost, times a load."""

    def __init__(self, millicores: int = 10) -> None:
        self.governor = CpuBudget(millicores)
        self.now = self.cpu = 0
        self.millicores = 0.0

    def run(self, seconds: int, millicores: float) -> list[tuple[int, str]]:
        """What was said, with the second it was said at."""
        said = []
        for _ in range(seconds):
            self.now += SECOND
            self.cpu += int(millicores * SECOND / 1000)
            if step := self.governor.look(self.now, self.cpu, self.costs):
                said.append((self.now // SECOND, step.said))
        return said

    def costs(self) -> list[SourceCost]:
        lanes = self.governor.lanes
        return [cost._replace(lane=lanes.get(cost.name, cost.lane)) for cost in COSTS]


def test_the_cheapest_loss_gives_way_first_and_what_names_a_subject_last() -> None:
    assert [said for _, said in Host().run(20 * WINDOW_NS // SECOND, 20)] == [
        "subject-fine is paused",
        "idle cgroups, disks and networks are looked at 5 times less often",
        "interrupts and snmp6 are read every 10 s instead of every second",
        "vmstat is read every second instead of ten times a second",
        "stat is read every second instead of ten times a second",
        "cgroup-cpu is read every second instead of ten times a second",
    ]


def test_a_step_is_judged_by_a_whole_window_after_it() -> None:
    seconds = [second for second, _ in Host().run(4 * STEP, 20)]
    assert seconds == [STEP, 2 * STEP, 3 * STEP, 4 * STEP]


def test_one_expensive_second_is_no_overload() -> None:
    host = Host()
    assert host.run(30, 8) == []
    assert host.run(1, 25) == []
    assert host.run(30, 8) == []


def test_after_a_minute_of_headroom_the_last_step_is_taken_back() -> None:
    host = Host()
    taken = host.run(STEP, 20)
    back = host.run(200, 5)
    assert [said for _, said in back] == [said for _, said in taken]
    assert back[0][0] >= STEP + 60
    assert host.governor.steps == []
    assert host.governor.lanes == {}
    assert host.governor.slowdown_factor == 1


def test_what_can_be_done_without_is_paused_until_there_is_headroom() -> None:
    host = Host()
    host.run(STEP, 20)
    assert host.governor.paused == {"subject-fine"}
    host.run(200, 5)
    assert host.governor.paused == frozenset()


def test_what_has_to_give_way_again_at_once_waits_longer_each_time() -> None:
    """A load that fits only without what was taken back must not make it come and go."""
    host = Host()
    host.run(2 * STEP, 20)
    changes = []
    for _ in range(3000):
        changes += host.run(1, 12 if len(host.governor.steps) < 2 else 5)
    taken_back = [second for second, _ in changes[::2]]
    waits = [later - sooner for sooner, later in pairwise(taken_back)]
    assert waits == sorted(waits)
    assert waits[0] >= 2 * 60
    assert len(changes) < 14


def test_use_between_headroom_and_budget_changes_nothing() -> None:
    host = Host()
    host.run(STEP, 20)
    assert host.run(2000, 9) == []
    assert len(host.governor.steps) == 1


def test_what_gave_way_is_said_in_a_sentence() -> None:
    host = Host(millicores=7)
    host.run(3 * STEP, 20)
    assert host.governor.said[2] == (
        "CPU budget of 7 millicores: interrupts and snmp6 are read every 10 s"
        " instead of every second"
    )


def test_nothing_is_left_to_give_way_in_the_end() -> None:
    host = Host()
    host.run(5000, 50)
    assert next_saving(host.costs(), host.governor.steps) is None
    lanes = {cost.name: cost.lane for cost in host.costs() if not cost.spare}
    assert Lane.FAST not in lanes.values()
    assert lanes["loadavg"] is Lane.SLOW
    assert all(lanes[cost.name] is Lane.SLOW for cost in COSTS
               if cost.scope is Scope.SUBJECT and not cost.spare)  # fmt: skip
    host.run(STEP, 50)
    assert {cost.name: cost.lane for cost in host.costs() if not cost.spare} == lanes


def test_a_budget_broken_with_nothing_left_is_said_until_it_holds() -> None:
    host = Host(millicores=20)
    host.run(5000, 50)
    assert host.governor.said[-1] == (
        "CPU budget of 20 millicores: 250% of it is used, and nothing is left to give way"
    )
    taken = len(host.governor.steps)
    host.run(STEP, 18)
    assert len(host.governor.said) == taken


@given(st.lists(st.floats(0, 3), max_size=400))
def test_levels_move_by_one_never_below_none_and_patience_stays_bounded(uses: list[float]) -> None:
    standing, now = BudgetState(), 0
    for use in uses:
        now += WINDOW_NS
        after = next_state(standing, use, now)
        assert abs(after.level - standing.level) <= 1
        assert after.level >= 0
        assert CALM_NS <= after.patience_ns <= LONGEST_CALM_NS
        assert (after.level > standing.level) == (use > 1)
        standing = after


@given(st.lists(st.floats(0, 60), min_size=1, max_size=300))
def test_steps_and_lanes_always_agree(loads: list[float]) -> None:
    host = Host()
    for load in loads:
        host.run(5, load)
        for cost, base in zip(host.costs(), COSTS, strict=True):
            moved = any(cost.name in step.lanes for step in host.governor.steps)
            assert (cost.lane is not base.lane) == moved
