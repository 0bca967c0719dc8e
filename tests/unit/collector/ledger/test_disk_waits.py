"""Whose requests a wait for storage is behind, on hosts with one disk and with several."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_collector.ledger.disk_waits import DiskUse

MS = 1_000_000
USES = st.lists(st.integers(0, 10**12), min_size=3, max_size=3)


def test_who_keeps_another_disk_busy_takes_nothing() -> None:
    use = DiskUse({"job": [200 * MS, 0], "hog": [0, 900 * MS]})
    assert use.shares("job") == {"job": 1.0}
    assert use.shares("hog") == {"hog": 1.0}


def test_each_disk_counts_by_the_requests_of_who_waits() -> None:
    """A quarter of the job's requests are on the disk that the hog uses by nine parts of ten."""
    use = DiskUse({"job": [300 * MS, 100 * MS], "hog": [0, 900 * MS]})
    assert use.shares("job") == pytest.approx({"job": 0.775, "hog": 0.225})


def test_without_requests_of_its_own_it_waits_for_all_disks() -> None:
    use = DiskUse({"a": [300 * MS, 0], "b": [0, 100 * MS]})
    assert use.shares("job") == pytest.approx({"a": 0.75, "b": 0.25})


def test_too_few_requests_are_nobody_elses() -> None:
    assert DiskUse({"hog": [90_000, 0]}).shares("job") == {"job": 1.0}
    assert DiskUse({}).shares("job") == {"job": 1.0}


def test_what_its_requests_take_alone_is_its_own() -> None:
    """A disk that serves many at a time: nine of ten requests of others double the latency."""
    use = DiskUse({"job": [100 * MS], "hog": [600 * MS], "other": [300 * MS]}, lambda *_: 0.5)
    assert use.shares("job") == pytest.approx({"job": 0.5, "hog": 1 / 3, "other": 1 / 6})


def test_its_own_part_is_no_less_than_its_part_of_all_requests() -> None:
    use = DiskUse({"job": [300 * MS], "hog": [100 * MS]}, lambda *_: 0.5)
    assert use.shares("job") == pytest.approx({"job": 0.75, "hog": 0.25})


def test_a_wait_without_requests_of_its_own_is_split_by_the_requests() -> None:
    """They wait before they are issued, while others have all places of the disk's queue."""
    use = DiskUse({"job": [20 * MS], "hog": [980 * MS]}, lambda *_: 1.0, {"job": 900 * MS})
    assert use.shares("job")["job"] == pytest.approx(0.02 + 0.98 * 20 / 900)


def test_hardly_any_requests_of_its_own_do_not_prove_what_it_waits_for() -> None:
    use = DiskUse({"job": [60_000], "hog": [900 * MS]}, lambda *_: 1.0, {"job": 900 * MS})
    assert use.shares("job")["job"] < 0.001


@given(
    requests=st.dictionaries(st.sampled_from("abcd"), USES),
    part=st.floats(0.0, 1.0),
)
def test_shares_add_up(requests: dict[str, list[int]], part: float) -> None:
    use = DiskUse(requests, lambda *_: part)
    for name in "abcde":
        assert sum(use.shares(name).values()) == pytest.approx(1.0)


@given(requests=st.dictionaries(st.sampled_from("abcd"), st.integers(MS, 10**12), min_size=1))
def test_on_a_single_disk_shares_are_those_of_the_requests(requests: dict[str, int]) -> None:
    use = DiskUse({name: [0, time] for name, time in requests.items()})
    everybody = sum(requests.values())
    for name in "abcde":
        assert use.shares(name) == pytest.approx({n: t / everybody for n, t in requests.items()})
