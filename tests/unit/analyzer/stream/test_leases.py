"""The owner of a shard: equal everywhere, evenly spread, and stable when members change."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from reveal_analyzer.stream.leases import rank
from reveal_analyzer.stream.redis_connection import FIRST_PAUSE, LONGEST_PAUSE
from reveal_contract.names import SHARDS
from reveal_contract.runtime.backoff import HALF_JITTER, Backoff

members = st.lists(st.text(min_size=1, max_size=9), min_size=1, max_size=6, unique=True)


@given(members, st.integers(0, SHARDS - 1))
def test_ranks_are_a_permutation(names: list[str], shard: int) -> None:
    assert sorted(rank(shard, name, names) for name in names) == list(range(len(names)))


@given(members, st.integers(0, SHARDS - 1))
def test_the_order_in_which_members_are_listed_is_of_no_matter(
    names: list[str], shard: int
) -> None:
    before = [rank(shard, name, names) for name in names]
    assert before == [rank(shard, name, sorted(names)) for name in names]


@given(members.filter(lambda names: len(names) > 1))
def test_a_member_that_leaves_moves_only_its_own_shards(names: list[str]) -> None:
    *stay, gone = names
    for shard in range(SHARDS):
        first = next(name for name in names if rank(shard, name, names) == 0)
        if first != gone:
            assert rank(shard, first, stay) == 0


def test_shards_spread_evenly() -> None:
    names = [f"analyzer-{number}" for number in range(4)]
    first = [min(names, key=lambda name: rank(shard, name, names)) for shard in range(SHARDS)]
    load = Counter(first)
    assert set(load) == set(names)
    assert max(load.values()) <= 2 * SHARDS / len(names)


def pause_after(failures: int) -> float:
    """Return the pause of a connection after some failed attempts."""
    backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE, HALF_JITTER)
    backoff.failures = failures
    return backoff.next()


@given(st.integers(0, 10_000))
def test_pauses_grow_to_a_limit_with_jitter(failures: int) -> None:
    assert FIRST_PAUSE / 2 <= pause_after(failures) <= LONGEST_PAUSE


def test_pauses_differ_so_that_analyzers_do_not_return_together() -> None:
    pauses = [pause_after(20) for _ in range(20)]
    assert len(set(pauses)) > 15
    assert min(pauses) >= LONGEST_PAUSE / 2
