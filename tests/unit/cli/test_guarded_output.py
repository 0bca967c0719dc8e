"""Output that cannot be written: one sentence and one exit code, and the work is done."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import pytest

from reveal_cli.__main__ import main
from reveal_cli.errors import DONE, ERROR, FOUND, USAGE
from reveal_cli.guarded_output import GuardedOutput, guarded_streams
from reveal_contract.facts import Cpu, Facts, Kernel
from reveal_contract.recording import RecordingWriter
from reveal_contract.wire import encode, gauges
from support.redis_streams import TABLE, message

FULL = Path("/dev/full")
NO_ROOM = "reveal: cannot write the output: No space left on device\n"
SLOW_CLOCK = Facts(
    node="n", cpu=Cpu(clock_flags=("constant_tsc",)),
    kernel=Kernel(clocksource="hpet", clocksources=("tsc", "hpet")),
)  # fmt: skip
pytestmark = pytest.mark.usefixtures("own_signals")


@pytest.fixture
def full() -> Iterator[TextIO]:
    """A stream on a full disk."""
    if not FULL.exists():
        pytest.skip("no /dev/full")
    with FULL.open("w") as stream:
        yield stream


@pytest.fixture
def closed_pipe() -> Iterator[TextIO]:
    """A pipe whose reader has ended, as with ``| head``."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as stream:
        yield stream


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """A recording with a configuration finding."""
    with RecordingWriter(tmp_path / "r.rvl") as writer:
        writer.facts(SLOW_CLOCK.to_json())
        for sequence in range(3):
            writer.message(encode(message("n", sequence), gauges(TABLE)), TABLE)
    return tmp_path / "r.rvl"


@pytest.mark.parametrize(
    "command", [["hypotheses"], ["hypotheses", "--json"], ["catalog", "--markdown"]]
)
def test_a_full_disk_gives_a_sentence_and_exit_code_1(
    command: list[str],
    full: TextIO,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "stdout", full)
    assert main(command) == ERROR
    assert capsys.readouterr().err == NO_ROOM


@pytest.mark.parametrize("flag", ["--help", "--version"])
def test_help_that_cannot_be_written_is_an_error_too(
    flag: str,
    full: TextIO,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "stdout", full)
    assert main([flag]) == ERROR
    assert capsys.readouterr().err == NO_ROOM


def test_a_command_whose_reader_has_ended_gives_its_own_exit_code(
    recording: Path, closed_pipe: TextIO, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As ``reveal analyze --fail-on low | head``: the file is written, the finding counts."""
    monkeypatch.setattr(sys, "stdout", closed_pipe)
    findings = tmp_path / "f.jsonl"
    flags = ["--fail-on", "low", "--findings", str(findings)]
    assert main(["analyze", str(recording), *flags]) == FOUND
    assert [json.loads(line)["kind"] for line in findings.read_text().splitlines()] == [
        "Configuration"
    ]


def test_files_are_written_though_the_output_is_not(
    recording: Path,
    full: TextIO,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "stdout", full)
    findings = tmp_path / "f.jsonl"
    flags = ["--fail-on", "low", "--findings", str(findings)]
    assert main(["analyze", str(recording), *flags]) == ERROR
    assert capsys.readouterr().err == NO_ROOM
    assert findings.read_text()


def test_errors_that_cannot_be_printed_do_not_change_the_exit_code(
    full: TextIO, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "stderr", full)
    assert main(["analyze", str(tmp_path / "none.rvl")]) == ERROR
    assert main(["hypotheses", "none-such"]) == USAGE
    assert main(["catalog", "--markdown"]) == DONE


def test_a_closed_descriptor_takes_any_output(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python has no stream where a shell closed the descriptor (``>&-``)."""
    monkeypatch.setattr(sys, "stdout", None)
    assert main(["catalog", "--markdown"]) == DONE


def test_an_error_of_the_system_gives_a_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_folder() -> str:
        raise FileNotFoundError(2, "No usable temporary directory found in ['/tmp']")

    monkeypatch.setattr("tempfile.gettempdir", no_folder)
    monkeypatch.setattr("os.access", lambda *_: False)
    assert main(["demo", "--list"]) == ERROR
    assert capsys.readouterr().err == ("reveal: No usable temporary directory found in ['/tmp']\n")


def test_the_streams_are_restored_with_their_text() -> None:
    raw = io.BytesIO()
    before, sys.stdout = sys.stdout, io.TextIOWrapper(raw, "utf-8")
    try:
        with guarded_streams() as output:
            sys.stdout.write("text\n")
            assert isinstance(sys.stdout, GuardedOutput)
        assert not isinstance(sys.stdout, GuardedOutput)
        assert (raw.getvalue(), output.error) == (b"text\n", None)
    finally:
        sys.stdout = before
