"""Parts of rows are all rows, once each, with what means need around them."""

from __future__ import annotations

import numpy as np
import pytest

from reveal_analyzer.tables.scoring import api, row_parts
from reveal_analyzer.tables.scoring.smooth import centered_mean, lasting
from reveal_analyzer.tables.scoring.table import Table


@pytest.mark.parametrize("cells", [1, 100, 1 << 18])
@pytest.mark.parametrize("rows", [1, 2, 97, 100])
def test_means_and_stretches_are_those_of_the_whole(
    rows: int, cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_parts, "_CELLS", cells)
    values = np.random.default_rng(0).normal(size=(rows, 3)) ** 2
    parts = row_parts.row_parts(rows, 3, 2)
    assert np.concatenate([np.arange(rows)[part.rows] for part in parts]).tolist() == list(
        range(rows)
    )
    for calculate in (lambda near: centered_mean(near, 5), lasting):
        found = [calculate(values[part.around])[part.inner] for part in parts]
        assert np.concatenate(found).tolist() == calculate(values).tolist()


def test_scores_do_not_depend_on_the_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(1).normal(50, 5, (700, 12))
    values[400:420, :4] += 60
    table = Table(np.arange(700) * 10**9, tuple(map(str, range(12))), values)
    whole = api.score(table)
    monkeypatch.setattr(row_parts, "_CELLS", 500)
    parted = api.score(table)
    assert parted.score.tolist() == whole.score.tolist()
    assert parted.spans == whole.spans != []
