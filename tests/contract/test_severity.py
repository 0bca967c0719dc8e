"""Severity: the thresholds of every source of findings, each at its edge."""

from __future__ import annotations

import pytest

from reveal_contract import severity
from reveal_contract.finding import Severity

LOW, MEDIUM, HIGH, CRITICAL = Severity


@pytest.mark.parametrize(
    ("ratio", "expected"), [(1.0, LOW), (1.99, LOW), (2.0, MEDIUM), (3.99, MEDIUM), (4.0, HIGH)]
)
def test_a_score_is_severe_by_its_multiple_of_the_threshold(
    ratio: float, expected: Severity
) -> None:
    assert severity.of_score(ratio) is expected


def test_an_episode_takes_the_worst_of_score_and_signatures() -> None:
    assert severity.of_episode(2.5, [LOW, HIGH]) is HIGH
    assert severity.of_episode(4.0, [LOW]) is HIGH
    assert severity.of_episode(4.0, []) is HIGH


def test_a_score_below_its_threshold_does_not_raise_a_signature() -> None:
    assert severity.of_episode(0.5, [LOW]) is LOW


def test_only_all_three_detectors_make_an_alarm_high() -> None:
    assert [severity.of_agreement(number, ()) for number in (2, 3)] == [MEDIUM, HIGH]
    assert [severity.of_agreement(number, [LOW]) for number in (0, 1, 2, 3)] == [
        LOW,
        LOW,
        MEDIUM,
        HIGH,
    ]
    assert severity.of_agreement(2, [LOW, CRITICAL]) is CRITICAL


@pytest.mark.parametrize(
    ("percent", "expected"),
    [(4.9, LOW), (5.0, MEDIUM), (14.9, MEDIUM), (15.0, HIGH), (29.9, HIGH), (30.0, CRITICAL)],
)
def test_a_slowdown_is_severe_by_its_percent(percent: float, expected: Severity) -> None:
    assert severity.of_slowdown(percent) is expected


@pytest.mark.parametrize("percent", [5.0, 29.0, 35.0, 200.0])
def test_a_slowdown_since_a_pause_is_no_worse_than_medium(percent: float) -> None:
    assert severity.of_slowdown(percent, resumed=True) is Severity.MEDIUM


def test_a_small_slowdown_since_a_pause_is_low() -> None:
    assert severity.of_slowdown(4.0, resumed=True) is Severity.LOW


def test_an_outlier_is_severe_by_its_score_unless_it_is_permanent() -> None:
    scores = (1.5, 2.0, 4.0)
    assert [severity.of_outlier(score, permanent=False) for score in scores] == [LOW, MEDIUM, HIGH]
    assert {severity.of_outlier(score, permanent=True) for score in scores} == {MEDIUM}
    assert severity.of_outlier(None, permanent=True) is LOW
