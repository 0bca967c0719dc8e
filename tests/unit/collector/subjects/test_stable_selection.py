"""Selection of the largest: stable while uses scatter, quick where one is much larger."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_collector.subjects.stable_selection import CpuRates, StableSelection

LIMIT = 16


def selection(limit: int = LIMIT) -> StableSelection[str]:
    return StableSelection(limit, 0.02, name=str)


def scattering(count: int, use: Callable[[int, int], float]) -> list[frozenset[str]]:
    """Return the selections of an hour, in which item ``n`` uses ``use(n, second)``."""
    chosen = selection()
    return [
        chosen.update({f"{n:03}": use(n, second) for n in range(count)}, float(second))
        for second in range(3600)
    ]


def changes(selections: list[frozenset[str]]) -> int:
    return sum(a != b for a, b in itertools.pairwise(selections))


@pytest.mark.parametrize("count", [17, 40])
def test_uses_that_scatter_change_nothing(count: int) -> None:
    rng = random.Random(count)
    equal = scattering(count, lambda n, second: 0.33 * max(0, rng.gauss(1, 0.1)))
    falling = scattering(count, lambda n, second: 2 / (n + 1) * max(0, rng.gauss(1, 0.2)))
    wide = scattering(count, lambda n, second: 0.2 * rng.lognormvariate(0, 0.7))
    assert [changes(each) for each in (equal, falling, wide)] == [0, 0, 0]


def test_a_much_larger_item_enters_within_seconds() -> None:
    chosen = selection()
    busy = {f"{n:03}": 0.05 for n in range(LIMIT)}
    for second in range(100):
        chosen.update(busy, float(second))
    for second in range(100, 110):
        selected = chosen.update({**busy, "job": 4.0}, float(second))
    assert "job" in selected
    assert len(selected) == LIMIT


def test_an_item_that_became_idle_makes_room_within_minutes() -> None:
    chosen = selection(1)
    chosen.update({"old": 1.0, "new": 0.5}, 0.0)
    for second in range(1, 300):
        assert chosen.update({"old": 1.0, "new": 0.5}, float(second)) == {"old"}
    for second in range(300, 500):
        selected = chosen.update({"old": 0.0, "new": 0.5}, float(second))
    assert selected == {"new"}


def test_subjects_that_take_turns_change_it_seldom() -> None:
    turns = scattering(100, lambda n, second: 2.0 if (second + 6 * n) % 600 < 20 else 0.0)
    assert 0 < changes(turns) <= 34


def test_several_are_replaced_together() -> None:
    chosen = selection()
    old = {f"old-{n}": 0.05 for n in range(LIMIT)}
    chosen.update(old, 0.0)
    jobs = {f"job-{n}": 4.0 for n in range(LIMIT)}
    for second in range(1, 31):
        selected = chosen.update({**old, **jobs}, float(second))
    assert selected == jobs.keys()


def test_what_ended_makes_room_and_what_is_gone_leaves() -> None:
    chosen = selection(2)
    chosen.update({"a": 1.0, "b": 1.0}, 0.0)
    assert chosen.update({"a": 1.0, "b": 1.0, "c": 0.1}, 1.0, ended={"b"}) == {"a", "c"}
    assert chosen.update({"a": 1.0}, 2.0) == {"a"}


def test_only_items_that_may_enter_do() -> None:
    chosen = selection(2)
    assert chosen.update({"a": 1.0, "b": 2.0, "c": 3.0}, 0.0, entering=["a"]) == {"a"}
    assert chosen.update({"a": 1.0, "b": 2.0, "c": 3.0}, 1.0, ended={"b", "c"}) == {"a"}


@given(
    st.integers(0, 4),
    st.lists(st.dictionaries(st.sampled_from("abcdefgh"), st.floats(0, 1e3)), max_size=20),
)
def test_all_room_is_used_and_no_more(limit: int, seconds: list[dict[str, float]]) -> None:
    chosen = selection(limit)
    for second, uses in enumerate(seconds):
        selected = chosen.update(uses, float(second))
        assert selected <= uses.keys()
        assert len(selected) == min(limit, len(uses))


def test_rates_are_the_cpus_since_the_last_call() -> None:
    rates: CpuRates[str] = CpuRates()
    assert rates.update({"a": 5_000_000_000}, 10.0) == {"a": 0.0}
    assert rates.update({"a": 9_000_000_000, "b": 7}, 12.0) == {"a": 2.0, "b": 0.0}
    assert rates.update({"a": 1}, 13.0) == {"a": 0.0}  # another cgroup of the same name
    assert math.isclose(rates.update({"a": 500_000_001}, 14.0)["a"], 0.5)
