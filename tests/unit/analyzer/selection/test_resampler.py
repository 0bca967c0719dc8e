"""Rows with an even period and their correlations, compared with numpy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_analyzer.arrays import Floats
from reveal_analyzer.selection.correlation import Correlation, CorrelationSums
from reveal_analyzer.selection.resampler import MetricInstance, ResampledRows, Resampler
from reveal_analyzer.selection.workload import average
from reveal_contract import catalogue
from reveal_contract.channels import ChannelTable
from support.grouped_metrics import FAST, TABLE, TICKS, slices
from support.property_tests import examples

TICK, SECOND = 100_000_000, 1_000_000_000
NAMES = ("cpu.user", "cpu.system", "cpu.idle", "cpu.iowait", "cpu.irq", "cpu.softirq", "cpu.steal")


def items(count: int) -> tuple[MetricInstance, ...]:
    return tuple(MetricInstance(catalogue.find(name), "") for name in NAMES[:count])


def correlated(*pieces: ResampledRows) -> Correlation:
    moments = CorrelationSums()
    for piece in pieces:
        moments.add(piece)
    return moments.correlation()


def all_rows(every_ns: int, seconds: int = 6) -> tuple[tuple[MetricInstance, ...], Floats]:
    resampler = Resampler(every_ns)
    pushed = [resampler.push(message, TABLE) for message in slices(seconds)]
    kept = [rows for rows in pushed if rows is not None]
    return kept[0].items, np.concatenate([rows.values for rows in kept])


@given(
    seed=st.integers(0, 2**32 - 1),
    rows=st.integers(20, 1500),
    offset=st.sampled_from([0.0, 1.0, 1e10]),
)
@examples(25)
def test_correlations_are_numpys_in_whatever_pieces_rows_come(
    seed: int, rows: int, offset: float
) -> None:
    draw = np.random.default_rng(seed)
    values = draw.standard_normal((rows, 5)) @ draw.standard_normal((5, 5)) + offset
    splits = np.sort(draw.integers(0, rows, 3))
    names = items(5)
    found = correlated(*(ResampledRows(names, piece) for piece in np.split(values, splits)))
    assert found.rows == rows
    assert found.moved.all()
    np.testing.assert_allclose(found.r, np.corrcoef(values.T), atol=1e-5 if offset else 1e-9)


def test_of_a_pair_only_rows_with_both_count() -> None:
    values = np.random.default_rng(1).standard_normal((200, 3))
    values[:, 1] += values[:, 0]
    values[::3, 0] = np.nan
    values[1::4, 1] = np.nan
    found = correlated(ResampledRows(items(3), values))
    for first, other in ((0, 1), (0, 2), (1, 2)):
        both = ~np.isnan(values[:, [first, other]]).any(axis=1)
        expected = np.corrcoef(values[both][:, [first, other]].T)[0, 1]
        assert found.r[first, other] == pytest.approx(expected, abs=1e-9)
        assert found.r[other, first] == found.r[first, other]


def test_what_stands_still_or_is_never_read_has_no_correlation() -> None:
    values = np.random.default_rng(2).standard_normal((100, 4))
    values[:, 1] = 3e9
    values[:, 2] = np.nan
    found = correlated(ResampledRows(items(4), values))
    assert found.moved.tolist() == [True, False, False, True]
    assert np.isnan(found.r[1:3]).all()
    assert not np.isnan(found.r[0, 3])


def test_few_common_rows_give_no_correlation() -> None:
    values = np.random.default_rng(3).standard_normal((50, 2))
    values[9:, 1] = np.nan
    found = correlated(ResampledRows(items(2), values))
    assert np.isnan(found.r[0, 1])
    assert found.moved.all()


def test_items_may_come_later() -> None:
    draw = np.random.default_rng(4)
    early, late = draw.standard_normal((60, 2)), draw.standard_normal((80, 3))
    late[:, 2] -= late[:, 1]
    found = correlated(ResampledRows(items(2), early), ResampledRows(items(3), late))
    assert [item.label for item in found.items] == list(NAMES[:3])
    both = np.concatenate([early, late[:, :2]])
    assert found.r[0, 1] == pytest.approx(np.corrcoef(both.T)[0, 1], abs=1e-9)
    assert found.r[1, 2] == pytest.approx(np.corrcoef(late.T)[1, 2], abs=1e-9)


def test_rows_are_rates_of_counters_and_levels_of_gauges() -> None:
    names, rows = all_rows(TICK)
    labels = [item.label for item in names]
    raw = np.concatenate([message.fast for message in slices(6)])
    assert len(rows) == 6 * TICKS
    np.testing.assert_allclose(rows[:, labels.index("cpu.user")], raw[:, 2] * 1e7 / 0.1)
    np.testing.assert_allclose(rows[:, labels.index("memory.mem_available")], raw[:, 8] * 1024)
    np.testing.assert_allclose(rows[:, labels.index("cpu.busy")], rows[:, labels.index("cpu.user")])


def test_subjects_and_the_collector_itself_are_no_metrics_of_the_node() -> None:
    names, _ = all_rows(TICK)
    labels = {item.label for item in names}
    assert labels == {channel.label for channel in FAST[:-1]} | {"cpu.busy"}


def test_a_row_is_the_mean_of_what_it_spans() -> None:
    names, ticks = all_rows(TICK)
    _, seconds = all_rows(SECOND)
    _, windows = all_rows(3 * SECOND)
    assert (len(seconds), len(windows)) == (6, 2)
    np.testing.assert_allclose(seconds, ticks.reshape(6, TICKS, len(names)).mean(axis=1))
    np.testing.assert_allclose(windows, seconds.reshape(2, 3, len(names)).mean(axis=1))


def test_a_slow_channel_is_repeated_over_its_slice() -> None:
    table = ChannelTable(FAST[2:3], FAST[8:9] + FAST[3:4])
    (message,) = slices(1)
    message = replace(
        message, table=table.key, fast=message.fast[:, 2:3], slow=np.array([7, 50]),
        fast_missing=message.fast_missing[:, :1], slow_missing=np.array([False, False]),
    )  # fmt: skip
    rows = Resampler(TICK).push(message, table)
    assert rows is not None
    labels = [item.label for item in rows.items]
    assert rows.values[:, labels.index("memory.mem_available")].tolist() == [7 * 1024.0] * TICKS
    assert rows.values[:, labels.index("network.nic.rx_bytes{eth0}")].tolist() == [50.0] * TICKS


def test_missing_samples_are_left_out_of_a_mean_and_never_zero() -> None:
    (message,) = slices(1)
    message.fast_missing[:4, 2] = True
    message.fast_missing[:, 8] = True
    rows = Resampler(SECOND).push(message, TABLE)
    assert rows is not None
    labels = [item.label for item in rows.items]
    expected = message.fast[4:, 2].mean() * 1e8
    assert rows.values[0, labels.index("cpu.user")] == pytest.approx(expected)
    assert np.isnan(rows.values[0, labels.index("memory.mem_available")])


def test_no_row_spans_a_gap_or_a_restart() -> None:
    first, second, third, fourth = slices(4)
    resampler = Resampler(2 * SECOND)
    assert resampler.push(first, TABLE) is None
    assert resampler.push(third, TABLE) is None  # the second is lost: the first counts for nothing
    assert resampler.push(replace(fourth, boot=b"x" * 16), TABLE) is None
    assert resampler.push(replace(second, boot=b"x" * 16), TABLE) is None  # the clock was set back
    assert resampler.push(replace(third, boot=b"x" * 16), TABLE) is not None


def test_a_workload_is_the_mean_of_its_runs_that_know() -> None:
    draw = np.random.default_rng(5)
    runs = []
    for seed in range(3):
        values = draw.standard_normal((300, 3))
        values[:, 1] += seed * values[:, 0]
        if seed == 2:
            values[:, 2] = 1.0  # stood still in this run
        runs.append(correlated(ResampledRows(items(3), values)))
    mean = average("job", runs)
    assert (mean.runs, mean.rows) == (3, 900)
    assert mean.r[0, 1] == pytest.approx(np.mean([run.r[0, 1] for run in runs]))
    assert mean.r[0, 2] == pytest.approx(np.mean([run.r[0, 2] for run in runs[:2]]))
    assert mean.moved.all()


def test_runs_on_other_hosts_join_by_name() -> None:
    draw = np.random.default_rng(6)
    first, two = draw.standard_normal((50, 2)), draw.standard_normal((50, 3))
    mean = average(
        "job",
        [
            correlated(ResampledRows(items(2), first)),
            correlated(ResampledRows(items(3)[::-1], two[:, ::-1])),
        ],
    )
    expected = (np.corrcoef(first.T)[0, 1] + np.corrcoef(two.T)[0, 1]) / 2
    assert mean.r[0, 1] == pytest.approx(expected)
    assert mean.r[1, 2] == pytest.approx(np.corrcoef(two.T)[1, 2])
    assert np.diag(mean.r).tolist() == [1.0, 1.0, 1.0]
