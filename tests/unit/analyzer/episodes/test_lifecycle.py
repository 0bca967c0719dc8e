"""The life of a case: it ends after ten calm seconds, or a minute in which nothing is read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_analyzer.episodes.lifecycle import Lifecycle, LifecycleSettings, Observation, Phase
from reveal_contract.finding import Resolution

SETTINGS = LifecycleSettings()
ACTIVE, CALM, UNOBSERVED = Observation.ACTIVE, Observation.CALM, Observation.UNOBSERVED
OBSERVATIONS = st.lists(st.sampled_from(Observation), max_size=200)


def after(observations: list[Observation], state: Lifecycle | None = None) -> Lifecycle:
    state = state or Lifecycle()
    for observation in observations:
        state = state.after(observation, SETTINGS)
    return state


@pytest.mark.parametrize(
    ("observations", "phase", "resolution"),
    [
        ([], Phase.ACTIVE, Resolution.NONE),
        ([CALM] * 9, Phase.CALM, Resolution.NONE),
        ([CALM] * 10, Phase.CLOSED, Resolution.ENDED),
        ([CALM] * 9 + [ACTIVE] + [CALM] * 9, Phase.CALM, Resolution.NONE),
        ([UNOBSERVED] * 59, Phase.UNOBSERVED, Resolution.NONE),
        ([UNOBSERVED] * 60, Phase.CLOSED, Resolution.UNOBSERVED),
        ([UNOBSERVED] * 59 + [ACTIVE] + [UNOBSERVED] * 59, Phase.UNOBSERVED, Resolution.NONE),
        # what was not read is neither calm nor a reason to count calm seconds again
        ([CALM] * 5 + [UNOBSERVED] * 30 + [CALM] * 4, Phase.CALM, Resolution.NONE),
        ([CALM] * 5 + [UNOBSERVED] * 30 + [CALM] * 5, Phase.CLOSED, Resolution.ENDED),
    ],
)
def test_phase_and_resolution(
    observations: list[Observation], phase: Phase, resolution: Resolution
) -> None:
    state = after(observations)
    assert (state.phase, state.resolution) == (phase, resolution)


@pytest.mark.parametrize(("gap_s", "closed"), [(1, False), (59, False), (60, True), (3600, True)])
def test_a_gap_counts_as_unobserved(gap_s: int, closed: bool) -> None:
    state = Lifecycle().after_gap(gap_s, SETTINGS)
    assert state.is_closed is closed
    assert state.resolution is (Resolution.UNOBSERVED if closed else Resolution.NONE)


def test_a_gap_and_seconds_that_are_not_read_add_up() -> None:
    state = after([UNOBSERVED] * 30).after_gap(30, SETTINGS)
    assert state.resolution is Resolution.UNOBSERVED


@given(OBSERVATIONS)
def test_there_is_no_state_from_which_a_case_cannot_end(observations: list[Observation]) -> None:
    state = after(observations)
    assert after([CALM] * SETTINGS.calm, state).is_closed
    assert after([UNOBSERVED] * SETTINGS.unobserved, state).is_closed
    assert after([CALM, UNOBSERVED] * SETTINGS.calm, state).is_closed


@given(OBSERVATIONS)
def test_it_never_ends_before_it_was_calm_or_unobserved_for_long_enough(
    observations: list[Observation],
) -> None:
    state = Lifecycle()
    since_active: list[Observation] = []
    for observation in observations:
        state = state.after(observation, SETTINGS)
        since_active = [] if observation is ACTIVE else [*since_active, observation]
        if state.is_closed:
            break
    if state.resolution is Resolution.ENDED:
        assert since_active.count(CALM) >= SETTINGS.calm
    elif state.resolution is Resolution.UNOBSERVED:
        assert since_active[-SETTINGS.unobserved :] == [UNOBSERVED] * SETTINGS.unobserved


@given(OBSERVATIONS, OBSERVATIONS)
def test_a_closed_case_stays_closed(before: list[Observation], later: list[Observation]) -> None:
    state = after([*before, *[CALM] * SETTINGS.calm])
    assert after(later, state) == state.after_gap(3600, SETTINGS) == state


@given(OBSERVATIONS)
def test_a_resolution_is_known_exactly_when_it_is_closed(observations: list[Observation]) -> None:
    state = after(observations)
    assert state.is_closed is (state.resolution is not Resolution.NONE)


def test_a_level_that_counts_as_normal_ends_as_accepted() -> None:
    state = Lifecycle()
    for _ in range(SETTINGS.calm):
        assert not state.is_closed
        state = state.after(Observation.ACCEPTED, SETTINGS)
    assert state.resolution is Resolution.ACCEPTED
    returned = Lifecycle(Phase.CALM, SETTINGS.calm - 1).after(Observation.CALM, SETTINGS)
    assert returned.resolution is Resolution.ENDED
