"""No CPU has more time in a spliced second than in the second of the base."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from reveal_contract.channels import Channel
from reveal_contract.metric import Kind, Lane
from scenariobench.cpu_time import STATES, CpuTime, share

CPUS, TICK_US = 2, 100_000
WIDTH = len(STATES)
COUNTS = st.lists(st.integers(0, 12), min_size=CPUS * WIDTH, max_size=CPUS * WIDTH)


def _array(counts: list[int]) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    return np.array(counts, np.int64).reshape(1, CPUS, WIDTH)


@given(COUNTS, st.lists(st.integers(0, 12), min_size=CPUS, max_size=CPUS))
def test_states_share_the_time_of_their_cpu(counts: list[int], time: list[int]) -> None:
    shared = share(_array(counts), np.array([time], np.int64))
    assert shared.min() >= 0
    assert shared.sum(axis=2).tolist() == [time]
    busy = min(_array(counts)[:, :, :-2].sum(), sum(time))
    assert shared[:, :, :-2].sum() == busy  # what has no time on its CPU runs on another


def test_what_fits_stays_as_it_is() -> None:
    counts = _array([3, 2, 0, 0, 0, 0, 1, 4, 0, 1, 0, 0, 0, 0, 0, 9])
    assert share(counts, counts.sum(axis=2)).tolist() == counts.tolist()


def test_the_host_counts_what_its_cpus_count() -> None:
    channels = [
        Channel(state, cpu, Kind.COUNTER, 1e7, Lane.FAST) for cpu in ("", "0", "1")
        for state in STATES
    ]  # fmt: skip
    channels.append(Channel("cpu.run_time", "0", Kind.COUNTER, 1.0, Lane.FAST))
    base = np.array([[0] * WIDTH + [0] * (WIDTH - 1) + [10] + [0] * (WIDTH - 1) + [10] + [0]])
    values = base.copy()
    values[0, WIDTH] = 15  # user time of the first CPU
    values[0, -1] = 150_000_000
    CpuTime(channels).fit(base, values, np.zeros_like(base, np.bool_), TICK_US)
    user, idle = values[0, 0 : 3 * WIDTH : WIDTH], values[0, WIDTH - 1 : 3 * WIDTH : WIDTH]
    assert user.tolist() == [15, 10, 5]
    assert idle.tolist() == [5, 0, 5]
    assert values[0, -1] == 100_000_000
