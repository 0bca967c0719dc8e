"""The files of a scan that fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from reveal_cli.errors import CliError
from reveal_cli.interrupt import Interrupt
from reveal_cli.live_session import LiveSession, ScanPlan
from reveal_cli.progress import PlainProgress
from reveal_cli.scan_directory import RECORDING, SUMMARY
from reveal_cli.scan_runner import run_scan
from reveal_contract.settings import AnalyzerSettings

PLAN = ScanPlan("n", 60.0, AnalyzerSettings(), ())


def scan(directory: Path, monkeypatch: pytest.MonkeyPatch, slices: int) -> None:
    def fail(session: LiveSession) -> None:
        session.state.slices = slices
        raise CliError("the collector ended")

    monkeypatch.setattr(LiveSession, "run", fail)
    with pytest.raises(CliError, match="the collector ended"):
        run_scan(PLAN, directory, PlainProgress(), Interrupt())


def test_a_scan_that_received_nothing_leaves_its_directory_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(2):
        scan(tmp_path, monkeypatch, slices=0)
        assert list(tmp_path.iterdir()) == []


def test_a_scan_that_fails_later_keeps_what_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scan(tmp_path, monkeypatch, slices=5)
    assert {RECORDING, SUMMARY} <= {path.name for path in tmp_path.iterdir()}
    with pytest.raises(CliError, match="exists already"):
        run_scan(PLAN, tmp_path, PlainProgress(), Interrupt())
