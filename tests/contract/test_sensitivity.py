"""Sensitivity: every setting has thresholds, and a higher one alarms earlier."""

from __future__ import annotations

from itertools import pairwise

from reveal_contract import settings
from reveal_contract.sensitivity import SENSITIVITIES


def test_every_setting_of_the_profile_has_its_thresholds() -> None:
    assert tuple(SENSITIVITIES) == settings.SENSITIVITIES


def test_each_step_lowers_every_threshold() -> None:
    for lower, higher in pairwise(SENSITIVITIES.values()):
        assert all(before > after for before, after in zip(lower, higher, strict=True))
