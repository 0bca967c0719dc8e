"""The budget of the programs: 1 % of the host over ten seconds."""

from __future__ import annotations

from reveal_collector.ledger.guard import CostGuard, Pause

SECOND = 1_000_000_000


def exceeded(cpus: int, shares: list[float]) -> list[bool]:
    guard, cost, found = CostGuard(cpus), 0, []
    for second, share in enumerate(shares):
        found.append(guard.is_exceeded(second * SECOND, cost))
        cost += int(share * SECOND)
    return found


def test_more_than_the_limit_for_ten_seconds_is_too_much() -> None:
    found = exceeded(1, [0.011] * 20)
    assert not any(found[:10])
    assert all(found[10:])


def test_the_limit_is_a_share_of_all_cpus() -> None:
    assert not any(exceeded(2, [0.019] * 30))
    assert any(exceeded(2, [0.021] * 30))


def test_a_burst_of_a_second_is_not() -> None:
    assert not any(exceeded(1, ([0.001] * 9 + [0.08]) * 4))


def test_pauses_double_while_the_cost_lasts() -> None:
    pause, now, lengths = Pause(), 0.0, []
    for _ in range(9):
        lengths.append(pause.begin(now))
        now += lengths[-1] + 11
    assert lengths == [20, 40, 80, 160, 320, 640, 1280, 1800, 1800]
    assert pause.begin(now + 70) == 20


def test_storms_with_minutes_between_them_have_short_pauses() -> None:
    pause = Pause()
    assert [pause.begin(now) for now in range(0, 600, 100)] == [20] * 6
