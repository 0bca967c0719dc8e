"""The spool: what waits for the API survives a restart, whatever became of the file."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_analyzer.sinks.kube import spool as module
from reveal_analyzer.sinks.kube.entry import Entry, Said
from reveal_analyzer.sinks.kube.spool import FILE, Spool
from reveal_contract.finding import Finding, Severity
from reveal_contract.kube import events
from reveal_contract.kube.anomaly_report import report
from reveal_contract.kube.events import Event, EventBook
from support.finding_factory import AT, finding, largest
from support.property_tests import examples


def entry(one: Finding | None = None) -> Entry:
    found = one or finding()
    return Entry(found.id, report(found, "p", 1), found.severity)


def test_what_was_kept_is_loaded(tmp_path: Path) -> None:
    kept = entry()
    told = Event(events.ANOMALY_DETECTED, events.node("n1"), "note", "reveal-analyzer", "pod")
    posting = EventBook().note(told, AT)
    assert posting is not None
    kept.events = [posting, Said(events.ANOMALY_RESOLVED, "over", AT, ("ns", "p", "u"))]
    Spool(tmp_path).keep([kept, entry(finding("cpu-2"))])
    one, two = Spool(tmp_path).load()
    assert (one.finding, one.report, one.events) == (kept.finding, kept.report, kept.events)
    assert two.report.name == "p-n1-cpu-2"
    assert one.dirty and one.told is None


def test_nothing_waits_nothing_is_there(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    assert spool.load() == []
    spool.keep([entry()])
    spool.keep([])
    assert list(tmp_path.iterdir()) == []
    spool.keep([])
    assert Spool(None).load() == []
    Spool(None).keep([entry()])


def test_rows_that_are_none_are_passed_over_and_counted(tmp_path: Path) -> None:
    good = json.dumps(entry().to_row())
    lacking = json.dumps({**entry().to_row(), "spec": {}})
    bad = ["", "{", "[]", "null", '{"finding": 1}', lacking, good[:-30], "\x00" * 50]
    (tmp_path / FILE).write_text("\n".join([bad[0], good, *bad[1:]]))
    spool = Spool(tmp_path)
    assert [one.report.name for one in spool.load()] == ["p-n1-cpu-1"]
    assert spool.corrupt == len(bad)


@given(st.binary(max_size=400), st.integers(0, 2000))
@examples(100)
def test_no_bytes_stop_the_start(noise: bytes, at: int) -> None:
    data = json.dumps(entry().to_row()).encode()
    spoiled = data[:at] + noise + data[at:]
    path = Path(os.environ.get("TMPDIR", "/tmp")) / f"reveal-spool-{os.getpid()}"
    path.mkdir(exist_ok=True)
    try:
        (path / FILE).write_bytes(spoiled)
        for one in Spool(path).load():
            assert one.report.core and one.report.labels()
    finally:
        (path / FILE).unlink()
        path.rmdir()


def test_it_is_bounded_and_keeps_the_most_severe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_BYTES", 40_000)
    mild = [entry(largest()) for _ in range(20)]
    severe = entry(finding("severe", severity=Severity.CRITICAL))
    Spool(tmp_path).keep([*mild, severe])
    assert (tmp_path / FILE).stat().st_size <= 40_000
    kept = Spool(tmp_path).load()
    assert kept[0].finding == "severe"
    assert 2 < len(kept) < 20


def test_a_folder_that_takes_nothing_costs_no_finding(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    spool = Spool(tmp_path / "file" / "below")
    spool.keep([entry()])
    spool.keep([entry()])
    assert caplog.text.count("in memory only") == 1
    spool.load()


def test_it_is_never_half(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spool = Spool(tmp_path)
    spool.keep([entry()])

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    spool.keep([entry(finding("cpu-2"))])
    monkeypatch.undo()
    assert [one.finding for one in Spool(tmp_path).load()] == ["cpu-1"]
