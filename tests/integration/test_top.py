"""``reveal top`` on this host."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from reveal_cli.live_ledger import IN_FORCE
from reveal_contract.ledger import Tier
from support.ledger_host import why_not
from support.standstill import without_lost_slices

TOP = [sys.executable, "-m", "reveal_cli", "top"]


def top(temporary: Path, *flags: str) -> list[str]:
    """Return the frame of a host where one process is busy."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy:
        try:
            done = subprocess.run(
                [*TOP, *flags], env={**os.environ, "TMPDIR": str(temporary)}, timeout=50,
                capture_output=True, text=True, check=False,
            )  # fmt: skip
        finally:
            busy.kill()
    assert (done.returncode, without_lost_slices(done.stderr)[0]) == (0, "")
    return done.stdout.splitlines()


@pytest.mark.timeout(60)
def test_without_a_terminal_it_prints_a_frame_and_leaves_nothing(tmp_path: Path) -> None:
    has_ledger = not why_not()
    lines = top(tmp_path)
    assert lines[0].startswith("reveal · ")
    tier = IN_FORCE[Tier.BPF if has_ledger else Tier.SCHEDSTAT]
    assert [line for line in lines if f"(ledger: {tier})" in line]
    # process groups have no row where only times of threads are known
    assert not has_ledger or any(line.startswith("SUBJECT") for line in lines)
    assert list(tmp_path.iterdir()) == []
