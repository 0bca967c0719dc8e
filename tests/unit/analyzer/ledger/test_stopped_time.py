"""What stopped threads lose: what their subject desired before, and no sleep."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_analyzer.ledger.stopped_time import StoppedTime
from reveal_contract.time_units import NS_PER_SECOND

JOB, OTHER = "/job", "/other"


class Second(NamedTuple):
    """Seconds a second that the threads of a subject desired and were stopped."""

    desired: float
    stopped: float = 0.0
    threads: int = 1
    valid: bool = True


def lost(*seconds: Second, of: StoppedTime | None = None) -> list[float]:
    """Return what a subject lost in each of these seconds."""
    reader = of or StoppedTime()
    return [_lost(reader, (JOB,), [second])[0] for second in seconds]


def _lost(reader: StoppedTime, subjects: tuple[str, ...], seconds: list[Second]) -> list[float]:
    desired, stopped, existed = (
        np.array([each[k] for each in seconds], float) * NS_PER_SECOND for k in range(3)
    )
    valid = np.array([each.valid for each in seconds])
    times = reader.lost(subjects, valid, desired, stopped, existed)
    return (times / NS_PER_SECOND).tolist()


def known(second: Second, seconds: int = 30) -> StoppedTime:
    """Return what knows a subject that has desired so much for a while."""
    reader = StoppedTime()
    lost(*[second] * seconds, of=reader)
    return reader


def test_a_busy_thread_loses_all_the_time_in_which_it_is_stopped() -> None:
    assert lost(Second(0.54, 0.46), of=known(Second(1.0))) == [pytest.approx(0.46)]
    assert lost(Second(0.54, 0.46)) == [pytest.approx(0.46)]  # from the first second on


def test_threads_that_would_sleep_lose_nothing() -> None:
    pool = Second(1.0, threads=20)
    assert lost(Second(0.54, 20 * 0.46, 20), of=known(pool)) == [pytest.approx(0.46)]
    half = Second(0.5)
    assert lost(Second(0.27, 0.46), of=known(half)) == [pytest.approx(0.23)]
    assert lost(Second(0.0, 0.46), of=known(Second(0.0))) == [0.0]


def test_a_suspended_editor_beside_a_job_loses_nothing() -> None:
    with_editor = [Second(desired, 1.0, 5) for desired in (4.0, 3.0, 4.2, 1.0, 4.0)]
    assert lost(*with_editor) == [0.0] * 5  # there from the start
    # suspended later, and the job works less in some seconds
    reader = known(Second(4.0, threads=5))
    assert lost(*with_editor, of=reader) == [0.0] * 5


def test_a_worker_that_is_stopped_for_good_loses_all_its_work() -> None:
    reader = known(Second(1.0, threads=2))  # its launcher sleeps
    assert lost(*[Second(0.0, 1.0, 2)] * 100, of=reader) == [pytest.approx(1.0)] * 100
    reader = known(Second(2.0, threads=2))  # another one works on
    assert lost(*[Second(1.0, 1.0, 2)] * 3, of=reader) == [pytest.approx(1.0)] * 3


def test_what_was_never_there_otherwise_is_not_known_to_lose() -> None:
    assert lost(*[Second(0.0, 3.0, 3)] * 3) == [0.0] * 3


def test_a_second_that_was_not_read_teaches_nothing() -> None:
    reader = known(Second(1.0))
    lost(*[Second(0.0, 0.0, 0, valid=False)] * 60, of=reader)
    assert lost(Second(0.0, 1.0), of=reader) == [pytest.approx(1.0)]


def test_subjects_are_known_by_name() -> None:
    reader = known(Second(1.0))
    found = _lost(reader, (OTHER, JOB), [Second(0.0, 1.0), Second(0.0, 1.0)])
    assert found == [0.0, pytest.approx(1.0)]


_share = st.floats(0, 1, allow_subnormal=False)
_seconds = st.lists(
    st.tuples(_share, _share, st.integers(0, 8), st.booleans()), min_size=1, max_size=30
)


@given(_seconds)
def test_never_more_is_lost_than_threads_were_stopped(drawn: list[tuple[float, ...]]) -> None:
    seconds = [
        Second((1 - stopped) * desired * threads, stopped * threads, int(threads), bool(valid))
        for desired, stopped, threads, valid in drawn
    ]
    for second, found in zip(seconds, lost(*seconds), strict=True):
        assert 0 <= found <= second.stopped + 1e-9
