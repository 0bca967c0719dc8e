"""The longest wait for a CPU of any subject, from the lost-time ledger."""

from __future__ import annotations

import math

import pytest

from reveal_contract import ledger
from reveal_contract.channels import Channel
from support.derived_metrics import derived

WAITS = (ledger.WAIT_OTHERS, ledger.WAIT_SELF, ledger.WAIT_IDLE)


def longest(waits: dict[str, tuple[float, ...]]) -> dict[str, float]:
    """Return the derived metrics, of waits for others, for itself and for an idle CPU."""
    channels = [Channel(metric, name) for name in waits for metric in (*WAITS, ledger.THROTTLED)]
    return derived(channels, [value for each in waits.values() for value in (*each, 9e9)])


def test_it_is_of_the_subject_that_waits_longest_whomever_it_waits_for() -> None:
    waits = {"a": (1.0, 2.0, 3.0), "b": (5.0, 0.0, 0.0), "c": (0.0, 4.0, 0.0)}
    assert longest(waits) == {"cpu.longest_waiting": 6.0}


def test_neither_the_kernel_nor_the_small_subjects_wait() -> None:
    named = {"a": (1.0, 0.0, 0.0)}
    nameless = dict.fromkeys(ledger.NAMELESS, (9.0, 9.0, 9.0))
    assert longest(named | nameless) == {"cpu.longest_waiting": 1.0}
    assert longest(nameless) == {}


@pytest.mark.parametrize(("b", "expected"), [(2.0, 2.0), (math.nan, math.nan)])
def test_a_subject_that_was_not_read_is_left_out(b: float, expected: float) -> None:
    found = longest({"a": (math.nan, 9.0, 9.0), "b": (b, 0.0, 0.0)})["cpu.longest_waiting"]
    assert found == pytest.approx(expected, nan_ok=True)
