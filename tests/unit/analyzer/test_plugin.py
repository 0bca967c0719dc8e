"""The public module of the analyzer: the detector of the documentation, and files of causes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reveal_analyzer.plugin import (
    HypothesisError,
    ScaledDetector,
    load_hypotheses,
    parse_hypotheses,
    validation_threshold,
)

PAGE = Path(__file__).parents[3] / "docs/extending.md"


def documented_detector() -> ScaledDetector:
    """Return the detector that the page on extensions defines."""
    [code] = re.findall(r"```python\n([^`]*ScaledDetector.*?)```", PAGE.read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)
    detector = names["WorstFeature"]()
    assert isinstance(detector, ScaledDetector)
    return detector


def test_the_documented_detector_finds_a_window_with_an_abnormal_feature() -> None:
    rng = np.random.default_rng(1)
    healthy, checked = rng.normal(size=(300, 5)), rng.normal(size=(20, 5))
    checked[7, 3] = 40.0
    detector = documented_detector().fit(healthy)
    scores = detector.score(checked)
    limit = validation_threshold(detector.score(rng.normal(size=(200, 5)))).value
    assert scores.argmax() == 7
    assert scores[7] > limit
    assert detector.contributions(checked)[7].argmax() == 3


def test_files_of_causes_are_read_or_refused_with_the_reason() -> None:
    assert any(rule.name == "OOMKill" for rule in load_hypotheses())
    with pytest.raises(HypothesisError, match=r"mine\.yaml"):
        parse_hypotheses("- name: Unfinished", "mine.yaml")
