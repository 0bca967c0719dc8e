"""The accelerated hour of the channel tables runs on the sources of this checkout."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

HOUR = Path(__file__).parents[1] / "tablesbench" / "hour.py"


def test_subjects_whose_use_scatters_keep_their_table() -> None:
    command = [sys.executable, str(HOUR), "2", "all alike, by 10 %", "310"]
    row = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    assert row["different"] <= 2
    assert row["analyzer ms a second"] > 0
