"""Tests of the check that the image build runs."""

from __future__ import annotations

import os
import subprocess
import sys


def check(**environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "reveal_collector.native"],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_check_passes_where_the_library_can_be_loaded() -> None:
    done = check()
    assert (done.returncode, done.stderr) == (0, "")


def test_the_check_fails_with_the_reason_where_the_library_is_missing() -> None:
    done = check(REVEAL_NATIVE="/nowhere/_native.so")
    assert done.returncode == 1
    assert "not built" in done.stderr
