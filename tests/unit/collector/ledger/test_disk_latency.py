"""What the requests of a subject take alone is known from seconds with hardly any others."""

from __future__ import annotations

import pytest

from reveal_collector.ledger.disk_latency import AloneLatencies, Requests
from reveal_collector.ledger.programs import DISKS

MS, SECOND = 1_000_000, 1_000_000_000
NAMES = {"job", "hog"}
SMALL = Requests(40 * MS, 10, 10 * 4096)  # 4 ms each
SLOWED = Requests(100 * MS, 10, 10 * 4096)
NONE = Requests()


def learned(*intervals: dict[str, list[Requests]]) -> AloneLatencies:
    alone = AloneLatencies()
    for each in intervals:
        alone.learn(each, NAMES, SECOND)
    return alone


def test_requests_that_take_longer_than_alone_are_partly_waits_for_others() -> None:
    alone = learned({"job": [NONE, SMALL], "hog": [Requests(900 * MS, 100, 1 << 20), NONE]})
    assert alone.own_part("job", 1, SLOWED) == pytest.approx(0.4)
    assert alone.own_part("job", 1, SMALL) == 1.0
    assert alone.own_part("job", 1, Requests(20 * MS, 10, 10 * 4096)) == 1.0


def test_nothing_is_known_of_another_disk_size_or_subject() -> None:
    alone = learned({"job": [SMALL]})
    assert alone.own_part("job", 1, SLOWED) == 0.0
    assert alone.own_part("hog", 0, SLOWED) == 0.0
    assert alone.own_part("job", 0, Requests(100 * MS, 10, 10 << 20)) == 0.0
    assert alone.own_part("job", 0, NONE) == 0.0


@pytest.mark.parametrize(
    "interval",
    [
        {"job": [SMALL], "hog": [Requests(20 * MS, 1, 4096)]},
        {"job": [SMALL], "hog": [Requests(2 * MS, 1, 1 << 20)]},
        {"job": [SMALL], "hog": [Requests(2 * MS, 9, 4096)]},
        {"job": [Requests(16 * MS, 4, 4 * 4096)], "hog": [NONE]},
        {"job": [Requests(11 * SECOND, 10, 10 * 4096)], "hog": [NONE]},
    ],
)
def test_seconds_with_others_or_few_requests_teach_nothing(
    interval: dict[str, list[Requests]],
) -> None:
    assert learned(interval).own_part("job", 0, SLOWED) == 0.0


def test_a_disk_that_becomes_slower_by_itself_is_learned() -> None:
    alone = learned({"job": [SMALL]}, *[{"job": [SLOWED]}] * 120)
    assert alone.own_part("job", 0, SLOWED) == pytest.approx(1.0, abs=0.01)


def test_a_stall_is_hardly_learned_and_a_faster_time_soon() -> None:
    stalled = {"job": [Requests(5 * SECOND, 10, 10 * 4096)]}
    assert learned({"job": [SMALL]}, stalled).own_part("job", 0, SLOWED) < 0.43
    faster = [{"job": [Requests(4 * MS, 10, 10 * 4096)]}] * 10
    assert learned({"job": [SMALL]}, *faster).own_part("job", 0, SMALL) < 0.13


def test_disks_that_share_an_index_are_not_learned() -> None:
    row = [NONE] * (DISKS - 1)
    alone = learned({"job": [*row, SMALL]})
    assert alone.own_part("job", DISKS - 1, SLOWED) == 0.0


def test_subjects_that_are_gone_are_forgotten() -> None:
    alone = AloneLatencies()
    for number in range(100):
        name = f"pod-{number}"
        alone.learn({name: [SMALL]}, {name}, SECOND)
    assert len(alone._known) <= 3
    assert alone.own_part("pod-99", 0, SLOWED) == pytest.approx(0.4)
