"""The ledger's time of a CPU quota where the kernel counts less, only while it throttles."""

from __future__ import annotations

import numpy as np
import pytest

from reveal_analyzer.derive.deriver import Deriver
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Kind, Lane
from reveal_contract.wire import Message

TIME, PERIODS = "cpu.subject.throttled_time", "cpu.subject.throttled_periods"
MS = 1e6


def table_of(*ledger_of: str, subjects: str = "ab") -> ChannelTable:
    fast = [
        Channel(metric, subject, Kind.COUNTER, scale)
        for subject in subjects
        for metric, scale in ((TIME, 1.0), (PERIODS, 1.0))
    ]
    slow = [
        Channel("ledger.throttled", subject, Kind.COUNTER, 1.0, Lane.SLOW) for subject in ledger_of
    ]
    return ChannelTable(tuple(fast), tuple(slow))


def derived(
    table: ChannelTable,
    kernel: dict[str, tuple[float, int]],
    ledger: dict[str, float],
    missing: bool = False,
) -> tuple[float, dict[str, float]]:
    """The column of all subjects and the channel of each, in ms a second."""
    fast = np.zeros((10, len(table.fast)), np.int64)
    for index, channel in enumerate(table.fast):
        time_ms, periods = kernel[channel.instance]
        value = time_ms * MS if channel.metric == TIME else periods
        fast[0, index] = round(value)
    slow = np.array([round(ledger[each.instance] * MS) for each in table.slow], np.int64)
    message = Message(
        node="n", boot=b"b" * 16, sequence=1, start_ns=10**18, tick_us=100_000, table=table.key,
        fast=fast, slow=slow, fast_missing=np.zeros(fast.shape, bool),
        slow_missing=np.full(slow.shape, missing),
    )  # fmt: skip
    second = Deriver().second(message, table)
    column = second.plan.labels.index(f"{TIME}__sum_values")
    each = {
        channel.instance: float(second.channels[index]) / MS
        for index, channel in enumerate(second.plan.channels)
        if channel.metric == TIME
    }
    return float(second.values[column]) / MS, each


def test_what_the_kernel_loses_is_added_to_its_subject_and_to_the_sum() -> None:
    total, each = derived(table_of("a", "b"), {"a": (40, 10), "b": (30, 2)}, {"a": 550, "b": 20})
    assert each == pytest.approx({"a": 550, "b": 30})
    assert total == pytest.approx(580)


def test_a_subject_that_the_kernel_does_not_throttle_has_no_such_time() -> None:
    total, each = derived(table_of("a", "b"), {"a": (0, 0), "b": (0, 1)}, {"a": 550, "b": 300})
    assert each == pytest.approx({"a": 0, "b": 300})
    assert total == pytest.approx(300)


@pytest.mark.parametrize(("ledger_of", "missing"), [("", False), ("a", True)])
def test_without_the_ledger_the_kernel_is_right(ledger_of: str, missing: bool) -> None:
    kernel = {"a": (40.0, 10), "b": (30.0, 2)}
    total, each = derived(table_of(*ledger_of), kernel, {"a": 550}, missing)
    assert each == pytest.approx({"a": 40, "b": 30})
    assert total == pytest.approx(70)


def test_a_subject_that_is_left_out_adds_nothing_to_the_sum() -> None:
    table = table_of("a", "b")
    deriver = Deriver(lambda channel: channel.instance == "a")
    fast = np.zeros((10, len(table.fast)), np.int64)
    fast[0] = 1
    message = Message(
        node="n", boot=b"b" * 16, sequence=1, start_ns=10**18, tick_us=100_000, table=table.key,
        fast=fast, slow=np.full(2, 5, np.int64), fast_missing=np.zeros(fast.shape, bool),
        slow_missing=np.zeros(2, bool),
    )  # fmt: skip
    second = deriver.second(message, table)
    assert second.values[second.plan.labels.index(f"{TIME}__sum_values")] == 5
