"""The budget of the programs: 1 % of the host over ten seconds."""

from __future__ import annotations

from reveal_collector.ledger.guard import LONGEST_PAUSE_S, CostGuard, Pause

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


def test_pauses_double_while_the_cost_returns() -> None:
    pause, now, lengths = Pause(), 0.0, []
    for _ in range(8):
        lengths.append(pause.begin(now))
        now += lengths[-1] + 30
    assert lengths == [60, 120, 240, 480, 960, 1800, 1800, 1800]
    assert pause.begin(now + LONGEST_PAUSE_S) == 60
