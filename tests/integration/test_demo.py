"""A real demo: the fault of the flag is injected, found and undone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from reveal_cli.errors import DONE
from reveal_cli.scan_directory import FINDINGS, RECORDING, SUMMARY


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_the_fault_of_the_flag_is_injected_and_its_outputs_are_written(tmp_path: Path) -> None:
    out = tmp_path / "out"
    ended = subprocess.run(
        [sys.executable, "-m", "reveal_cli", "demo", "--fault", "cpu_quota", "--warmup", "20s",
         "--output", str(out)],
        capture_output=True, text=True, check=False, timeout=150,
    )  # fmt: skip
    if "does not work here" in ended.stderr:
        pytest.skip(ended.stderr.strip())
    assert ended.returncode == DONE, ended.stdout + ended.stderr
    findings = [json.loads(line) for line in (out / FINDINGS).read_text().splitlines()]
    assert "CPU" in {row["subsystem"] for row in findings}
    assert json.loads((out / SUMMARY).read_text())["warmupSeconds"] == 20
    assert (out / RECORDING).stat().st_size > 0
