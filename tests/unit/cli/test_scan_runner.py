"""The files of a scan that ends, fails or is interrupted."""

from __future__ import annotations

from pathlib import Path

import pytest

from reveal_cli.errors import CliError
from reveal_cli.interrupt import Interrupt
from reveal_cli.live_session import LiveSession, ScanPlan
from reveal_cli.progress import PlainProgress
from reveal_cli.scan_directory import RECORDING, REPORT, SUMMARY
from reveal_cli.scan_runner import run_scan
from reveal_contract.settings import AnalyzerSettings
from reveal_contract.wire import encode, gauges
from support.synthetic_node import Node

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


class EventProgress(PlainProgress):
    """Keeps what it prints for those who watch."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[str] = []

    def event(self, line: str) -> None:
        self.events.append(line)


def receive(session: LiveSession) -> None:
    """Record some seconds, as a scan does."""
    node = Node()
    for _ in range(12):
        message = node.slice()
        session._recording.message(encode(message, gauges(node.table)), node.table)
    session.state.slices = 12


def test_a_scan_writes_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LiveSession, "run", receive)
    result = run_scan(PLAN, tmp_path, PlainProgress(), Interrupt())
    assert not result.failed
    assert "</html>" in (tmp_path / REPORT).read_text()


def test_an_interrupted_scan_names_the_command_that_writes_its_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt, progress = Interrupt(), EventProgress()

    def interrupted(session: LiveSession) -> None:
        receive(session)
        interrupt._on_signal(2, None)

    monkeypatch.setattr(LiveSession, "run", interrupted)
    result = run_scan(PLAN, tmp_path, progress, interrupt)
    assert not result.failed
    assert not (tmp_path / REPORT).exists()
    assert progress.events == [f"`reveal report {tmp_path}` writes the page of this scan"]


def test_a_failure_of_the_page_leaves_the_findings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise ArithmeticError("odd data")

    monkeypatch.setattr(LiveSession, "run", receive)
    monkeypatch.setattr("reveal_cli.report_file.page_data", fail)
    result = run_scan(PLAN, tmp_path, PlainProgress(), Interrupt())
    assert result.failed
    assert capsys.readouterr().err == "reveal: no report.html (ArithmeticError: odd data)\n"
    assert (tmp_path / SUMMARY).exists()
