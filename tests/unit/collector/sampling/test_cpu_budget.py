"""The CPU budget: which savings are taken, in which order, and when they are reverted."""

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
SAVING_S = WINDOW_NS // SECOND + 1  # seconds until a saving is taken
COSTS = [
    SourceCost("stat", Lane.FAST, 300),
    SourceCost("vmstat", Lane.FAST, 900),
    SourceCost("cgroup-cpu", Lane.FAST, 500, Scope.SUBJECT),
    SourceCost("subject-fine", Lane.FAST, 5, Scope.SUBJECT, optional=True),
    SourceCost("cgroups", Lane.SLOW, 700, Scope.SUBJECT),
    SourceCost("snmp6", Lane.SLOW, 40),
    SourceCost("interrupts", Lane.SLOW, 90),
    SourceCost("loadavg", Lane.SLOW, 3),
    SourceCost("filesystems", Lane.RARE, 3),
]


class Host:
    """A collector whose CPU use is what the sources in their lanes cost, times a load."""

    def __init__(self, millicores: int = 10) -> None:
        self.budget = CpuBudget(millicores)
        self.now = self.cpu = 0
        self.millicores = 0.0

    def run(self, seconds: int, millicores: float) -> list[tuple[int, str]]:
        """Return the messages of savings taken or reverted, each with its second."""
        messages = []
        for _ in range(seconds):
            self.now += SECOND
            self.cpu += int(millicores * SECOND / 1000)
            if saving := self.budget.update(self.now, self.cpu, self.costs):
                messages.append((self.now // SECOND, saving.message))
        return messages

    def costs(self) -> list[SourceCost]:
        lanes = self.budget.lanes
        return [cost._replace(lane=lanes.get(cost.name, cost.lane)) for cost in COSTS]


def test_savings_start_with_the_least_loss_and_end_with_sources_of_subjects() -> None:
    assert [message for _, message in Host().run(20 * WINDOW_NS // SECOND, 20)] == [
        "idle cgroups, disks and networks are read 5 times less often",
        "interrupts and snmp6 are read every 10 s instead of every second",
        "vmstat is read every second instead of ten times a second",
        "stat is read every second instead of ten times a second",
        "subject-fine is paused",
        "cgroup-cpu is read every second instead of ten times a second",
    ]


def test_a_saving_is_evaluated_over_a_whole_window_after_it() -> None:
    seconds = [second for second, _ in Host().run(4 * SAVING_S, 20)]
    assert seconds == [SAVING_S, 2 * SAVING_S, 3 * SAVING_S, 4 * SAVING_S]


def test_a_single_expensive_second_is_no_overload() -> None:
    host = Host()
    assert host.run(30, 8) == []
    assert host.run(1, 25) == []
    assert host.run(30, 8) == []


def test_after_a_minute_of_headroom_the_last_saving_is_reverted() -> None:
    host = Host()
    taken = host.run(SAVING_S, 20)
    back = host.run(200, 5)
    assert [message for _, message in back] == [message for _, message in taken]
    assert back[0][0] >= SAVING_S + 60
    assert host.budget.savings == []
    assert host.budget.lanes == {}
    assert host.budget.slowdown_factor == 1


def test_optional_sources_are_paused_until_there_is_headroom() -> None:
    host = Host()
    host.run(4 * SAVING_S, 20)
    assert host.budget.paused == frozenset()
    host.run(SAVING_S, 20)
    assert host.budget.paused == {"subject-fine"}
    host.run(100, 5)
    assert host.budget.paused == frozenset()


def test_after_a_burst_all_detail_is_back_within_minutes() -> None:
    host = Host()
    taken = host.run(20 * SAVING_S, 20)
    back = host.run(600, 5)
    assert [message for _, message in back] == [message for _, message in reversed(taken)]
    first, *later = [second for second, _ in back]
    assert first >= 20 * SAVING_S + 60
    assert [b - a for a, b in pairwise([first, *later])] == [SAVING_S] * len(later)


def test_a_saving_that_is_soon_needed_again_is_kept_longer_each_time() -> None:
    """A load that fits only with the last saving must not make it alternate."""
    host = Host()
    host.run(2 * SAVING_S, 20)
    changes = []
    for _ in range(3000):
        changes += host.run(1, 12 if len(host.budget.savings) < 2 else 5)
    reverted = [second for second, _ in changes[::2]]
    waits = [later - sooner for sooner, later in pairwise(reverted)]
    assert waits == sorted(waits)
    assert waits[0] >= 2 * 60
    assert len(changes) < 14


def test_use_between_headroom_and_budget_changes_nothing() -> None:
    host = Host()
    host.run(SAVING_S, 20)
    assert host.run(2000, 9) == []
    assert len(host.budget.savings) == 1


def test_a_saving_is_reported_in_a_sentence() -> None:
    host = Host(millicores=7)
    host.run(2 * SAVING_S, 20)
    assert host.budget.messages[1] == (
        "CPU budget of 7 millicores: interrupts and snmp6 are read every 10 s"
        " instead of every second"
    )


def test_no_saving_is_left_in_the_end() -> None:
    host = Host()
    host.run(5000, 50)
    assert next_saving(host.costs(), host.budget.savings) is None
    lanes = {cost.name: cost.lane for cost in host.costs() if not cost.optional}
    assert Lane.FAST not in lanes.values()
    assert lanes["loadavg"] is Lane.SLOW
    assert all(lanes[cost.name] is Lane.SLOW for cost in COSTS
               if cost.scope is Scope.SUBJECT and not cost.optional)  # fmt: skip
    host.run(SAVING_S, 50)
    assert {cost.name: cost.lane for cost in host.costs() if not cost.optional} == lanes


def test_an_exhausted_budget_is_reported_until_it_holds() -> None:
    host = Host(millicores=20)
    host.run(5000, 50)
    assert host.budget.messages[-1] == (
        "CPU budget of 20 millicores: 250% of it is used, and nothing is left to reduce"
    )
    taken = len(host.budget.savings)
    host.run(SAVING_S, 18)
    assert len(host.budget.messages) == taken


@given(st.lists(st.floats(0, 3), max_size=400))
def test_levels_move_by_single_steps_and_patience_stays_bounded(uses: list[float]) -> None:
    state, now = BudgetState(), 0
    for use in uses:
        now += WINDOW_NS
        after = next_state(state, use, now)
        assert abs(after.level - state.level) <= 1
        assert after.level >= 0
        assert CALM_NS <= after.patience_ns <= LONGEST_CALM_NS
        assert (after.level > state.level) == (use > 1)
        state = after


@given(st.lists(st.floats(0, 60), min_size=1, max_size=300))
def test_savings_and_lanes_always_agree(loads: list[float]) -> None:
    host = Host()
    for load in loads:
        host.run(5, load)
        for cost, base in zip(host.costs(), COSTS, strict=True):
            moved = any(cost.name in saving.lanes for saving in host.budget.savings)
            assert (cost.lane is not base.lane) == moved
