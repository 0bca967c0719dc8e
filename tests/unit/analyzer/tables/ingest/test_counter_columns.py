"""Counters of tables from other tools become rates; levels do not change."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_analyzer.tables.ingest import counter_columns
from reveal_analyzer.tables.scoring.table import Table
from support.property_tests import examples

ROWS = 600


def table(period: float = 1.0, **columns: object) -> Table:
    result = np.column_stack([np.asarray(column, float) for column in columns.values()])
    times = (np.arange(len(result)) * period * 1e9).astype(np.int64)
    return Table(times, tuple(columns), result)


def steps(seed: int = 0, rows: int = ROWS) -> np.ndarray:
    return np.random.default_rng(seed).integers(1, 100, rows).astype(float)


def test_counters_are_separated_from_levels() -> None:
    rising = np.cumsum(steps())
    reset = np.where(np.arange(ROWS) < 300, rising, rising - rising[299])
    rare = (np.arange(ROWS) > 400) * 5.0
    result = table(
        rising=rising, reset=reset, level=steps(), shift=rare, oom_kills_total=rare,
        constant=np.ones(ROWS), falls=rising * -1, missing=np.full(ROWS, np.nan),
    )  # fmt: skip
    assert counter_columns.find(result) == {"rising", "reset", "oom_kills_total"}
    sawtooth = table(heap=np.arange(ROWS) % 50)
    short = table(ramp=np.arange(19))
    assert counter_columns.find(sawtooth) == counter_columns.find(short) == set()


def test_a_counter_with_such_a_name_may_restart_and_dip() -> None:
    """As after a reboot in a short table, and on kernels that correct the time of iowait."""
    rising = np.cumsum(steps(rows=400))
    dip = rising.copy()
    dip[200:] -= dip[200] - dip[199] + 0.05
    restarted = np.where(np.arange(400) < 100, rising + 900.0, rising - rising[99])
    result = table(
        disk_read_bytes_total=restarted, cpu_seconds_total=dip, dip=dip, restarted=restarted
    )
    found = counter_columns.find(result)
    assert found == {"disk_read_bytes_total", "cpu_seconds_total", "restarted"}


LEVELS = (
    "mem_used", "node_memory_Active_bytes", "MemAvailable", "disk.used_percent", "jvm_heap_mb",
    "container_memory_usage_bytes", "memory.mem_available", "rss", "cpu_temp{core0}", "%util",
    "filesystem_size", "memory.kmem.usage_in_bytes",
)  # fmt: skip
COUNTERS = (
    "rx_bytes", "node_network_receive_bytes_total", "cpu_usage_usec", "cpuacct.usage", "pgfault",
    "cache_miss_count", "open_total", "network.tcp.retrans_segs", "TcpActiveOpens", "cache-misses",
)  # fmt: skip


@pytest.mark.parametrize("name", [*LEVELS, *COUNTERS])
def test_a_level_that_rises_all_the_time_is_no_counter(name: str) -> None:
    rising = Table(np.arange(ROWS) * 10**9, (name,), np.cumsum(steps())[:, None])
    assert counter_columns.find(rising) == ({name} if name in COUNTERS else set())


def test_a_name_does_not_make_a_counter_of_what_falls() -> None:
    assert counter_columns.find(table(memory_total=steps())) == set()


@pytest.mark.parametrize("period", [0.1, 1.0, 60.0])
def test_rates_are_per_second_and_missing_after_a_reset(period: float) -> None:
    grown = steps()
    rising = np.cumsum(grown)
    reset = np.where(np.arange(ROWS) < 300, rising, rising - rising[299])
    result = table(period, a=rising, b=reset, level=grown)
    counter_columns.make_rates(result, {"a", "b", "elsewhere"})
    np.testing.assert_allclose(result.values[1:, 0], grown[1:] / period)
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(result.values[:, 1])), [0, 300])
    np.testing.assert_array_equal(result.values[:, 2], grown)


@examples(50)
@given(st.integers(1, 40), st.integers(1, 7), st.integers(1, 300))
def test_blocks_make_no_difference(rows: int, width: int, block_bytes: int) -> None:
    random = np.random.default_rng(rows * 100 + width)
    values = np.cumsum(random.integers(0, 9, (rows, width)), axis=0).astype(float)
    times = np.cumsum(random.integers(1, 9, rows)).astype(np.int64) * 10**9
    names = tuple(f"m{number}" for number in range(width))
    whole, parts = (Table(times, names, values.copy()) for _ in range(2))
    previous = counter_columns._BLOCK_BYTES
    try:
        found = counter_columns.find(whole)
        counter_columns.make_rates(whole, names)
        counter_columns._BLOCK_BYTES = block_bytes
        assert counter_columns.find(parts) == found
        counter_columns.make_rates(parts, names)
    finally:
        counter_columns._BLOCK_BYTES = previous
    np.testing.assert_array_equal(whole.values, parts.values)
    expected = np.diff(values, axis=0) / (np.diff(times) / 1e9)[:, None]
    np.testing.assert_allclose(whole.values[1:], expected)
    assert np.isnan(whole.values[0]).all()
