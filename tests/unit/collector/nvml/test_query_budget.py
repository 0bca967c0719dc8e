"""How often the driver is queried: by cost, within a share of the time, and reported."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reveal_collector.nvml.query_budget import (
    MAX_SHARE,
    PERIODS_NS,
    QUICK_NS,
    RARE_NS,
    SLOW_NS,
    QueryBudget,
)
from reveal_contract.time_units import NS_PER_SECOND
from support.property_tests import examples

US, MS = 1_000, 1_000_000


def budget_of(*periods: int, gpus: int = 1, share: float = MAX_SHARE) -> QueryBudget:
    """Return a budget of queries q0, q1... with these periods on each GPU."""
    budget = QueryBudget(share)
    budget.set_queries(
        ((str(gpu), f"q{index}"), period)
        for gpu in range(gpus)
        for index, period in enumerate(periods)
    )
    return budget


def ask(budget: QueryBudget, gpu: int, query: str, cost_ns: int, times: int = 20) -> int:
    """Return the period (ns) after this many calls of the same cost."""
    for _ in range(times):
        budget.record((str(gpu), query), cost_ns)
    budget.review()
    return budget.period_ns((str(gpu), query))


def test_a_cheap_query_keeps_its_pace() -> None:
    budget = budget_of(QUICK_NS, SLOW_NS, 5 * NS_PER_SECOND)
    assert ask(budget, 0, "q0", 30 * US) == QUICK_NS
    assert ask(budget, 0, "q1", 300 * US) == SLOW_NS
    assert ask(budget, 0, "q2", 5 * MS) == 5 * NS_PER_SECOND
    assert budget.slowed == []


def test_a_query_over_five_milliseconds_slows_to_1_s_and_then_10_s() -> None:
    budget = budget_of(QUICK_NS)
    assert ask(budget, 0, "q0", 6 * MS) == SLOW_NS
    assert budget.slowed == ["GPU 0: q0 is read every 1 s, because a call takes 6000 us"]
    assert ask(budget, 0, "q0", 80 * MS) == RARE_NS


def test_the_slow_card_is_slowed_and_its_neighbour_is_not() -> None:
    budget = budget_of(QUICK_NS, gpus=2)
    ask(budget, 0, "q0", 6 * MS)
    assert ask(budget, 1, "q0", 30 * US) == QUICK_NS


def test_a_single_long_call_does_not_change_the_cost() -> None:
    budget = budget_of(QUICK_NS)
    ask(budget, 0, "q0", 30 * US, times=19)
    assert ask(budget, 0, "q0", 500 * MS, times=1) == QUICK_NS


def test_what_takes_most_of_the_time_is_slowed_on_all_gpus_alike() -> None:
    budget = budget_of(QUICK_NS, QUICK_NS, gpus=8)
    for gpu in range(8):  # together 8 x (0.9 + 0.2) ms of 100
        for _ in range(20):
            budget.record((str(gpu), "q0"), 900 * US)
            budget.record((str(gpu), "q1"), 200 * US)
    assert budget.share > MAX_SHARE
    assert budget.review()
    assert {budget.period_ns((str(gpu), "q0")) for gpu in range(8)} == {SLOW_NS}
    assert {budget.period_ns((str(gpu), "q1")) for gpu in range(8)} == {QUICK_NS}
    assert budget.share <= MAX_SHARE
    assert not budget.review()


def test_a_query_that_became_cheap_is_sped_up_again() -> None:
    budget = budget_of(QUICK_NS)
    assert ask(budget, 0, "q0", 6 * MS) == SLOW_NS
    assert ask(budget, 0, "q0", 4 * MS) == SLOW_NS  # near the limit: no to and fro
    assert ask(budget, 0, "q0", 50 * US) == QUICK_NS
    assert budget.slowed == []


def test_prices_outlive_a_new_enumeration() -> None:
    budget = budget_of(QUICK_NS)
    ask(budget, 0, "q0", 6 * MS)
    budget.set_queries([(("0", "q0"), QUICK_NS), (("1", "q0"), QUICK_NS)])
    assert budget.period_ns(("0", "q0")) == SLOW_NS
    assert budget.period_ns(("1", "q0")) == QUICK_NS


@examples(60)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([QUICK_NS, SLOW_NS, 5 * NS_PER_SECOND, RARE_NS]),
            st.integers(0, 400 * MS),
        ),
        min_size=1, max_size=40,
    )
)  # fmt: skip
def test_the_share_is_kept_or_everything_is_as_slow_as_it_gets(
    queries: list[tuple[int, int]],
) -> None:
    budget = budget_of(*(period for period, _ in queries))
    for index, (_, cost) in enumerate(queries):
        for _ in range(20):
            budget.record(("0", f"q{index}"), cost)
    budget.review()
    periods = [budget.period_ns(("0", f"q{index}")) for index in range(len(queries))]
    assert all(now >= nominal for now, (nominal, _) in zip(periods, queries, strict=True))
    assert budget.share <= MAX_SHARE or set(periods) == {PERIODS_NS[-1]}
