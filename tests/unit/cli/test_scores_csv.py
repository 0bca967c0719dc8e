"""The CSV of scores: no name that others chose is a formula."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from reveal_analyzer.tables.ingest.reader import read
from reveal_analyzer.tables.scoring.api import Scores
from reveal_cli.scores_csv import name_cell, table_lines


@pytest.mark.parametrize("name", ["=cmd|calc", "+1", "-1", "@x", "\t=1", "\r=1"])
def test_a_name_that_a_spreadsheet_would_compute_is_text(name: str) -> None:
    assert name_cell(name) == f"'{name}"
    assert name_cell(f"n{name}") == f"n{name}"


def test_hosts_of_a_table_are_no_formulas(tmp_path: Path) -> None:
    rows = [f"{1_795_255_200 + n},{host},{n % 7}.5" for n in range(40) for host in ("=a", "+b")]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["time,host,load", *rows, ""]))
    data = read(path)
    scores = Scores(np.zeros(40), 1.0, np.zeros(40, np.bool_), {}, [])
    _, *lines = table_lines(data, [scores, scores])
    assert {line.rstrip("\n").rpartition(",")[2] for line in lines} == {"'+b"}
