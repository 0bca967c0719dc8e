"""The progress of a table's analysis: a line on a terminal, nothing elsewhere."""

from __future__ import annotations

import io
import re

import pytest

from reveal_cli.table_progress import TableProgress
from support.terminal_stream import TerminalStream

CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


@pytest.fixture(autouse=True)
def _terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")


def displayed(stream: TerminalStream) -> str:
    return CONTROL.sub("", stream.getvalue())


def test_a_long_analysis_shows_its_step_and_share() -> None:
    stream = TerminalStream()
    with TableProgress("metrics.csv", stream, quiet_s=0.0) as progress:
        progress.step("scoring")
        progress._next = 0.0
        progress.update(0.42)
    assert "reveal · metrics.csv · 0s · scoring" in displayed(stream)
    assert "scoring 42%" in displayed(stream)


def test_a_line_is_gone_after_the_analysis() -> None:
    stream = TerminalStream()
    with TableProgress("metrics.csv", stream, quiet_s=0.0) as progress:
        progress.step("reading")
    assert stream.getvalue().endswith("\x1b[2K")


def test_a_short_analysis_shows_nothing() -> None:
    stream = TerminalStream()
    with TableProgress("metrics.csv", stream, quiet_s=60.0) as progress:
        progress.step("reading")
        progress.update(0.5)
    assert stream.getvalue() == ""


def test_a_file_has_no_progress() -> None:
    stream = io.StringIO()
    with TableProgress("metrics.csv", stream, quiet_s=0.0) as progress:
        progress.step("reading")
    assert stream.getvalue() == ""
