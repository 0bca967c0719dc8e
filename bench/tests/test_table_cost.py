"""The tables whose cost is measured are what they are called."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from table_cost import SHAPES, Shape, scaled, write_table


def test_a_table_has_its_shape_and_a_fault(tmp_path: Path) -> None:
    write_table(tmp_path / "t.csv", Shape(60, 300, 5))
    frame = pd.read_csv(tmp_path / "t.csv")
    assert frame.shape == (300, 61)
    assert (np.diff(frame["time"]) == 5).all()
    high = frame.drop(columns="time").to_numpy() > 65.0
    assert high[200:240, :3].all()
    assert high.sum() == 120


def test_a_scale_shortens_the_longer_side() -> None:
    assert scaled(SHAPES["wide"], 0.1) == Shape(500, 1_440, 60)
    assert scaled(SHAPES["tall"], 0.1) == Shape(40, 72_000, 1)
