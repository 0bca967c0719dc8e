"""Recordings, outputs and the ledger of findings."""

import errno
import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from reveal_cli.__main__ import main
from reveal_cli.collector_process import CollectorProcess
from reveal_cli.commands.catalog import listing
from reveal_cli.errors import ERROR, USAGE, CliError
from reveal_cli.finding_log import FindingLog
from reveal_cli.output_files import FindingsFile, claim_directory, missing, write_whole
from reveal_cli.recordings import Recording, Slices
from reveal_cli.replay import Replay
from reveal_collector.doctor import ChannelRow, Diagnosis
from reveal_collector.registry import MissingSource
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.finding import (
    Finding,
    FindingChange,
    FindingUpdate,
    Severity,
    State,
    finding_id,
)
from reveal_contract.metric import Subsystem
from reveal_contract.recording import Writer
from reveal_contract.wire import Message, encode, gauges
from support.polling import wait_until

TABLE = ChannelTable((Channel("cpu.user"),), ())


def message(sequence: int) -> Message:
    return Message(
        node="n", boot=bytes(16), sequence=sequence, start_ns=sequence * 10**9, tick_us=100_000,
        table=TABLE.key, fast=np.ones((10, 1), np.int64), slow=np.zeros(0, np.int64),
        fast_missing=np.zeros((10, 1), bool), slow_missing=np.zeros(0, bool),
    )  # fmt: skip


def wire(sequence: int) -> bytes:
    return encode(message(sequence), gauges(TABLE))


def finding(second: int = 1, state: State = State.OPEN) -> Finding:
    time_ns = second * 10**9
    return Finding(
        finding_id("n", Subsystem.CPU, time_ns),
        "n",
        Subsystem.CPU,
        Severity.LOW,
        state,
        time_ns,
        time_ns,
        "c",
    )


class Change:
    def __init__(self, change: str, finding: Finding) -> None:
        self.change, self.finding = change, finding


def test_a_recording_without_a_name_is_read_back_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with Recording(None) as recording:
        for sequence in (1, 2):
            recording.message(wire(sequence), TABLE)
        recording.note({"a": 1})
        slices = Slices(recording.path)
        assert [taken.sequence for taken, _ in slices] == [1, 2]
        assert slices.notes == [{"a": 1}]
        assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_reported_once_and_loses_only_what_does_not_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Recording(tmp_path / "r.rvl") as recording:
        recording.message(wire(1), TABLE)
        with monkeypatch.context() as full:
            full.setattr(Writer, "message", raise_full)
            recording.message(wire(2), TABLE)
            reported = recording.problem
            recording.message(wire(3), TABLE)
        recording.message(wire(4), TABLE)
    assert "No space left on device" in reported
    assert (recording.problem, recording.left_out) == (reported, 2)
    assert [taken.sequence for taken, _ in Slices(tmp_path / "r.rvl")] == [1, 4]


def raise_full(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_damaged_message_in_an_intact_file_is_a_readable_error(tmp_path: Path) -> None:
    with Writer(tmp_path / "r.rvl") as writer:
        writer.message(wire(1)[:-1] + b"\0", TABLE)
    with pytest.raises(CliError, match="checksum"):
        list(Slices(tmp_path / "r.rvl"))


@pytest.mark.parametrize("content", [b"", b"no recording", b"RVLREC\x00\x01M\x00\x00\x00\x00abcd"])
def test_analyze_reports_what_is_wrong_with_a_file(
    tmp_path: Path, content: bytes, capsys: pytest.CaptureFixture[str], own_signals: None
) -> None:
    path = tmp_path / "bad.rvl"
    path.write_bytes(content)
    assert main(["analyze", str(path)]) == ERROR
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert str(path) in message


def test_analyze_of_a_file_that_is_not_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], own_signals: None
) -> None:
    assert main(["analyze", str(tmp_path / "none.rvl")]) == ERROR
    assert "No such file" in capsys.readouterr().err


def test_a_directory_belongs_to_the_scan_that_came_first(tmp_path: Path) -> None:
    claim_directory(tmp_path / "a" / "b")
    with pytest.raises(CliError, match="exists already"):
        claim_directory(tmp_path / "a" / "b")
    (tmp_path / "file").touch()
    with pytest.raises(CliError, match="is not a directory"):
        claim_directory(tmp_path / "file")


def test_a_file_is_replaced_atomically(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "f"
    write_whole(path, "old")
    with monkeypatch.context() as broken:
        broken.setattr(Path, "replace", raise_full)
        with pytest.raises(CliError, match="cannot write"):
            write_whole(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_findings_file_follows_and_gives_up_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = FindingsFile(tmp_path / "f.jsonl")
    kept.keep([])
    assert (tmp_path / "f.jsonl").read_text() == ""
    kept.keep([finding()])
    assert json.loads((tmp_path / "f.jsonl").read_text())["id"] == finding().id
    monkeypatch.setattr(Path, "replace", raise_full)
    with pytest.raises(CliError):
        kept.keep([])
    kept.keep([finding(2)])


def test_missing_sources_are_parsed_from_any_heartbeat() -> None:
    row = {"source": "perf", "reason": "r", "remedy": ""}
    assert missing({"missing": [row, "odd"]}) == [row]
    assert missing({"missing": "odd"}) == missing({}) == []


def test_the_ledger_keeps_the_last_update_of_each_finding() -> None:
    ledger = FindingLog()
    late, early = finding(5), finding(1)
    assert ledger.take([FindingUpdate(FindingChange.OPENED, late)]) == [late]
    assert ledger.take([FindingUpdate(FindingChange.OPENED, early)]) == [early]
    resolved = replace(early, state=State.RESOLVED)
    assert ledger.take([FindingUpdate(FindingChange.RESOLVED, resolved)]) == []
    assert ledger.findings == [resolved, late]


def test_a_suspicion_is_displayed_until_it_is_a_finding_or_expires() -> None:
    ledger = FindingLog()
    ledger.take([FindingUpdate(FindingChange.SUSPECTED, finding())])
    assert ledger.suspected == [finding()]
    assert ledger.findings == []
    ledger.take([FindingUpdate(FindingChange.OPENED, finding())])
    assert ledger.suspected == []
    ledger.take([FindingUpdate(FindingChange.SUSPECTED, finding(9))])
    for _ in range(5):
        ledger.take([])
    assert ledger.suspected == []


def test_a_replay_counts_what_is_missing_between_slices() -> None:
    replay = Replay()
    for sequence in (7, 8, 11, 12):
        replay.count(message(sequence), TABLE)
    assert (replay.slices, replay.lost, replay.channels) == (4, 2, 1)


def wait_for_end(process: CollectorProcess) -> None:
    wait_until(lambda: process.returncode is not None, "it ends")


def test_a_collector_that_cannot_begin_speaks_for_itself() -> None:
    with CollectorProcess(["--node", "n", "--record", os.devnull, "--exclude", "nope"]) as process:
        wait_for_end(process)
        failure = process.failure()
    assert failure.code == USAGE
    assert str(failure).startswith("no such source: nope; known are")


def test_the_catalogue_shows_a_metric_once_with_its_instances() -> None:
    row = ChannelRow(
        "a.b{0}", "a.b", "0", "ns", "counter", "fast", "CPU", "stat", "user", "M", "higher"
    )
    rows = tuple(replace(row, channel=f"a.b{{{n}}}", instance=str(n)) for n in range(9))
    found = Diagnosis(rows, (MissingSource("perf", "needs root", "run as root"),), ())
    text = "\n".join(listing(found, 100))
    assert text.count("a.b") == 1
    for part in ("0, 1, 2", "9 in all", "M. Hurts when higher.", "9 channels of 1 metrics", "perf"):
        assert part in text


@pytest.mark.skipif(sys.platform != "linux", reason="reads the kernel")
def test_catalog_of_this_host_as_json(
    capsys: pytest.CaptureFixture[str], own_signals: None
) -> None:
    assert main(["catalog", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert len(document["channels"]) > 200
    assert {"channel", "unit", "kind", "lane", "source", "origin", "meaning"} <= set(
        document["channels"][0]
    )
