"""A ranking is the same with what the scoring has learned, and with what was too much to keep."""

from __future__ import annotations

import numpy as np
import pytest

from reveal_analyzer.tables.scoring import learned
from reveal_analyzer.tables.scoring.api import Scores, Table, rank_spans, score


def table() -> Table:
    """Return three blocks of metrics with a fault, a change of level and recurring events."""
    random = np.random.default_rng(2)
    values = random.normal(50, 5, (600, 300))
    values[300:330, ::10] += 60
    values[450:, 7] += 80
    values[10::50, 5] += 70
    values[100:104, 9] = np.nan
    return Table(np.arange(600) * 10**9, tuple(f"m{index}" for index in range(300)), values)


def rankings(judged: Table, scores: Scores, known: learned.LearnedBlocks | None) -> list[object]:
    return [
        [(each.name, each.score, each.value, each.baseline, each.first) for each in ranking]
        for ranking in rank_spans(judged, scores.spans, learned=known)
    ]


def test_a_ranking_is_the_same_without_it() -> None:
    judged = table()
    scores = score(judged)
    assert len(scores.spans) > 1
    assert scores.learned is not None
    assert rankings(judged, scores, scores.learned) == rankings(judged, scores, None)


@pytest.mark.parametrize("kept", [0, 1, 2])
def test_no_more_is_kept_than_there_is_room_for(kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    judged = table()
    whole = score(judged)
    # a block of 128 metrics has weights of 3 x 128 x 128 numbers; one has changed values, too
    weights, changed = 8 * 3 * 128 * 128, 8 * 600 * 128
    monkeypatch.setattr(learned, "_MOST_BYTES", kept and kept * weights + changed)
    scores = score(judged)
    assert scores.learned is not None
    blocks = [scores.learned.of(index, judged.values) for index in range(3)]
    assert [block is not None for block in blocks] == [index < kept for index in range(3)]
    assert rankings(judged, scores, scores.learned) == rankings(judged, whole, None)
