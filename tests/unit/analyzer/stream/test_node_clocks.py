"""Nodes whose clock differs from that of Redis, and slices that only waited."""

from __future__ import annotations

import pytest

from reveal_analyzer.stream.node_clocks import NodeClocks
from reveal_analyzer.stream.received import Received
from support.redis_streams import T0, TABLE, message


def received(node: str, second: int, later_s: float) -> Received:
    """Return a slice that arrived so much later than it ended, by the clock of its node."""
    slice_ = message(node, second)
    arrived_ms = round((T0 / 1e9 + second + 0.9 + later_s) * 1000)
    return Received(node, slice_, TABLE, b"", f"{arrived_ms}-0".encode(), 0)


def texts(clocks: NodeClocks) -> list[str]:
    return [each.message for each in clocks.degradations()]


@pytest.mark.parametrize(
    ("later_s", "words"),
    [
        (2 * 3600 + 5, "the clock of n is 2 h behind that of Redis"),
        (-3 * 86_400, "the clock of n is 3 d ahead of that of Redis"),
        (90, "the clock of n is 2 min behind that of Redis"),
    ],
)
def test_a_clock_that_is_wrong_for_a_minute_is_reported(later_s: float, words: str) -> None:
    clocks = NodeClocks()
    for second in range(59):
        clocks.add(received("n", second, later_s))
    assert texts(clocks) == []
    clocks.add(received("n", 59, later_s))
    [degradation] = clocks.degradations()
    assert (degradation.reason, degradation.nodes) == ("NodeClockWrong", 1)
    assert words in degradation.message


def test_slices_that_waited_for_redis_are_no_sign_of_a_wrong_clock() -> None:
    clocks = NodeClocks()
    for second in range(120):
        clocks.add(received("n", second, max(0.01, 100.0 - 2 * second)))
    assert texts(clocks) == []


def test_a_clock_that_was_corrected_is_right_after_a_minute() -> None:
    clocks = NodeClocks()
    for second in range(60):
        clocks.add(received("n", second, 7200))
    assert len(texts(clocks)) == 1
    for second in range(60, 120):
        clocks.add(received("n", second, 0.01))
    assert texts(clocks) == []


def test_the_largest_differences_are_first_and_all_nodes_are_counted() -> None:
    clocks = NodeClocks()
    for number in range(5):
        for second in range(60):
            clocks.add(received(f"n{number}", second, 3600 * (number + 1)))
    [degradation] = clocks.degradations()
    assert degradation.nodes == 5
    assert "the clock of n4 is 5 h behind" in degradation.message
    assert "n2 is 3 h behind that of Redis and 2 more; synchronize" in degradation.message
    clocks.forget(["n4", "n3", "n2", "n1", "n0", "unknown"])
    assert clocks.degradations() == []
