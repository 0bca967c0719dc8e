"""The spool: pending reports survive a restart, whatever happened to the file."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_analyzer.sinks.kube import spool as module
from reveal_analyzer.sinks.kube.entry import PendingEvent, ReportEntry
from reveal_analyzer.sinks.kube.spool import FILE, Spool
from reveal_contract.finding import Finding, Severity
from reveal_contract.kube import events
from reveal_contract.kube.anomaly_report import report
from reveal_contract.kube.events import Event, EventRecorder
from support.finding_factory import START_NS, finding, largest
from support.property_tests import examples


def entry(given: Finding | None = None) -> ReportEntry:
    found = given or finding()
    return ReportEntry(found.id, report(found, "p", 1), found.severity)


def test_written_entries_are_loaded(tmp_path: Path) -> None:
    kept = entry()
    event = Event(events.ANOMALY_DETECTED, events.node("n1"), "note", "reveal-analyzer", "pod")
    posting = EventRecorder().record(event, START_NS)
    assert posting is not None
    kept.events = [
        posting,
        PendingEvent(events.ANOMALY_RESOLVED, "over", START_NS, ("ns", "p", "u")),
    ]
    Spool(tmp_path).write([kept, entry(finding("cpu-2"))])
    first, second = Spool(tmp_path).load()
    assert (first.finding_id, first.report, first.events) == (
        kept.finding_id,
        kept.report,
        kept.events,
    )
    assert second.report.name == "p-n1-cpu-2"
    assert first.dirty and first.written_core is None


def test_without_pending_reports_there_is_no_file(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    assert spool.load() == []
    spool.write([entry()])
    spool.write([])
    assert list(tmp_path.iterdir()) == []
    spool.write([])
    assert Spool(None).load() == []
    Spool(None).write([entry()])


def test_corrupt_rows_are_skipped_and_counted(tmp_path: Path) -> None:
    good = json.dumps(entry().to_row())
    without_spec = json.dumps({**entry().to_row(), "spec": {}})
    bad = ["", "{", "[]", "null", '{"finding": 1}', without_spec, good[:-30], "\x00" * 50]
    (tmp_path / FILE).write_text("\n".join([bad[0], good, *bad[1:]]))
    spool = Spool(tmp_path)
    assert [each.report.name for each in spool.load()] == ["p-n1-cpu-1"]
    assert spool.corrupt == len(bad)


@given(st.binary(max_size=400), st.integers(0, 2000))
@examples(100)
def test_any_file_can_be_loaded(noise: bytes, position: int) -> None:
    data = json.dumps(entry().to_row()).encode()
    corrupted = data[:position] + noise + data[position:]
    path = Path(os.environ.get("TMPDIR", "/tmp")) / f"reveal-spool-{os.getpid()}"
    path.mkdir(exist_ok=True)
    try:
        (path / FILE).write_bytes(corrupted)
        for each in Spool(path).load():
            assert each.report.core and each.report.labels()
    finally:
        (path / FILE).unlink()
        path.rmdir()


def test_it_is_limited_and_keeps_the_most_severe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_BYTES", 40_000)
    mild = [entry(largest()) for _ in range(20)]
    severe = entry(finding("severe", severity=Severity.CRITICAL))
    Spool(tmp_path).write([*mild, severe])
    assert (tmp_path / FILE).stat().st_size <= 40_000
    kept = Spool(tmp_path).load()
    assert kept[0].finding_id == "severe"
    assert 2 < len(kept) < 20


def test_a_folder_that_cannot_be_written_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    spool = Spool(tmp_path / "file" / "below")
    spool.write([entry()])
    spool.write([entry()])
    assert caplog.text.count("in memory only") == 1
    spool.load()


def test_a_failed_write_leaves_the_earlier_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = Spool(tmp_path)
    spool.write([entry()])

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    spool.write([entry(finding("cpu-2"))])
    monkeypatch.undo()
    assert [each.finding_id for each in Spool(tmp_path).load()] == ["cpu-1"]
