"""Steps that take seconds: their lengths one by one, and slowdowns near what two minutes tell."""

from __future__ import annotations

import numpy as np
import pytest

from reveal_analyzer.heartbeat import autocorrelation
from reveal_analyzer.heartbeat.reference import StepReference
from reveal_analyzer.heartbeat.slowdown_state import SUSTAINED_S
from reveal_analyzer.heartbeat.tracker import StepTime
from support.heartbeat_nodes import TICK_HZ, Job, Longer
from support.tracked_job import follow

LONG = 5.3


def last_step(job: Job, end: float) -> float | None:
    """Return the last step's length at a time (s), read from 20 s at 10 Hz."""
    clock = job.clock(60, TICK_HZ)
    until = int(end * TICK_HZ)
    return autocorrelation.last_step(clock[until - 20 * TICK_HZ : until], TICK_HZ, LONG)


@pytest.mark.parametrize("end", range(22, 50, 3))
def test_the_length_of_a_single_step_is_read(end: int) -> None:
    steady = last_step(Job(LONG, jitter=0.0, evaluates=0), end)
    assert steady == pytest.approx(LONG, rel=0.01)


def test_a_step_that_is_longer_is_read_as_longer() -> None:
    job = Job(LONG, jitter=0.0, evaluates=0, slower=Longer(8, 30))
    assert last_step(job, 55) == pytest.approx(1.08 * LONG, rel=0.02)


def test_an_evaluation_changes_no_length() -> None:
    job = Job(LONG, jitter=0.0, evaluates=25)
    read = [last_step(job, end) for end in np.arange(27, 40, 0.5)]
    assert all(length is None or length == pytest.approx(LONG, rel=0.05) for length in read)


def test_what_does_not_repeat_is_no_step() -> None:
    clock, half = Job(LONG, jitter=0.0, evaluates=0).clock(60, TICK_HZ), int(LONG / 2 * TICK_HZ)
    stalled = np.concatenate([clock[: 25 * TICK_HZ], clock[25 * TICK_HZ + half :]])
    ends = range(28 * TICK_HZ, 38 * TICK_HZ, 5)
    read = [
        autocorrelation.last_step(stalled[end - 20 * TICK_HZ : end], TICK_HZ, LONG) for end in ends
    ]
    assert None in read


SLOWED = {
    "5 %, evaluated often": Job(5.456, 0.3, 0.0137, Longer(5, 150), 25, 640468165),
    "3 %, young": Job(5.283, 0.3, 0.0072, Longer(3, 150), 40, 604129844),
    "3 %, steady": Job(5.436, 0.6, 0.0069, Longer(3, 150), 40, 232650093),
    "3 %": Job(5.261, 0.15, 0.0119, Longer(3, 240), 40, 397951735),
    "5 %, shorter steps": Job(3.162, 0.3, 0.0172, Longer(5, 150), 0, 1029813664),
}


@pytest.mark.parametrize("job", SLOWED.values(), ids=SLOWED)
def test_a_small_slowdown_of_long_steps_is_read(job: Job) -> None:
    assert isinstance(job.slower, Longer)
    onset = int(job.slower.onset)
    slow = [number for number, step in enumerate(follow(job.clock(onset + 170))) if _slower(step)]
    assert len(slow) >= SUSTAINED_S
    assert min(slow) > onset


def test_a_slowdown_that_begins_while_long_steps_are_learned_is_read() -> None:
    job = Job(5.3, 0.3, 0.01, Longer(10, 150), 0, 3)
    read = follow(job.clock(320))
    assert all(not _slower(step) for step in read[:150])
    assert all(_slower(step) for step in read[220:])


def _slower(step: StepTime | None) -> bool:
    return step is not None and step.slower


def reference(steps: int, readings: int = 80) -> StepReference:
    """Return the reference of long steps: of readings that scatter, and so many lengths."""
    first, second, learned = np.random.default_rng(0), np.random.default_rng(1), StepReference()
    for length in LONG * (1 + 0.01 * first.standard_normal(steps)):
        learned.learn_step(float(length))
    for period in LONG * (1 + 0.004 * second.standard_normal(readings)):
        learned.learn({60: float(period)})
    return learned


def level(learned: StepReference) -> float:
    (reading,) = learned.readings({60: LONG})
    return reading.level


def test_lengths_of_single_steps_show_more_than_few_readings() -> None:
    assert level(reference(100)) < 0.6 * level(reference(0))


def test_a_young_rhythm_is_judged_by_its_readings() -> None:
    assert level(reference(100, readings=40)) == level(reference(0, readings=40))


def test_lengths_of_steps_outlive_a_restart() -> None:
    learned = reference(100)
    restored = StepReference.restored(learned.save())
    assert level(restored) == pytest.approx(level(learned), rel=0.02)


def test_a_state_without_lengths_of_steps_is_restored() -> None:
    tree = reference(0).save()
    assert isinstance(tree["deviations"], dict)
    del tree["deviations"]["step"]
    assert not StepReference.restored(tree).has_steps


def test_the_last_seconds_of_a_job_that_changes_are_forgotten() -> None:
    learned, wild = reference(60), reference(60)
    for number in range(20):
        wild.learn_step(LONG * (0.9 + 0.2 * (number % 16 > 7)))
    wild.forget_last(20)
    learned.forget_last(0)
    assert level(wild) < 2 * level(learned)
