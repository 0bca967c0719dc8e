"""The steps of keeping the samples of a finding, on slices that pass by."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from reveal_analyzer.evidence.piece import EvidenceWriter
from reveal_analyzer.evidence.samples import Samples
from reveal_analyzer.state.records import restore_record
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.finding import Confidence, Finding, Pod, Subject
from reveal_contract.metric import Kind
from reveal_contract.recording import RecordingReader
from reveal_contract.subjects import Identity, SubjectKind
from support.evidence_samples import FIRST_NS, ListedSlices, MemoryStore, finding, slices
from support.synthetic_node import TABLE


def writer(source: ListedSlices, most_bytes: int = 10**6) -> tuple[EvidenceWriter, MemoryStore]:
    store = MemoryStore()
    return EvidenceWriter(source, store, most_bytes), store


def ticks(store: MemoryStore) -> dict[int, int]:
    kept = Samples.from_recording(store.kept["cpu-0123456789"])
    return {(each.start_ns - FIRST_NS) // 10**9: each.ticks for each in kept.slices}


def follow(work: EvidenceWriter, source: ListedSlices, first: int, last: int, of: Finding) -> None:
    for now in range(first, last, 18):
        source.now = now
        work.step(of, whole=now < 158, late=False)


def test_a_finding_that_lasts_is_kept_from_its_onset_to_its_end() -> None:
    source = ListedSlices(slices(400))
    work, store = writer(source)
    follow(work, source, 108, 300, finding(100))
    source.now = 310
    over = finding(100, end=300)
    assert not work.step(over, whole=False, late=False).complete
    assert restore_record(Finding, store.left[over.id]["finding"]) == over
    source.now = 370
    assert work.step(over, whole=False, late=False) == (True, True)
    found = ticks(store)
    assert set(found) == set(range(40, 361))
    assert {second for second, count in found.items() if count == 1} == set(range(161, 240))
    assert store.left == {}


def test_a_node_that_stopped_sending_completes_with_what_there_is() -> None:
    source = ListedSlices(slices(120), now=120)
    work, store = writer(source)
    over = finding(100, end=119)
    assert not work.step(over, whole=True, late=False).complete
    assert work.step(over, whole=False, late=True).complete
    assert max(ticks(store)) == 119


def test_nothing_is_written_where_nothing_was_sent() -> None:
    work, store = writer(ListedSlices([]))
    assert work.step(finding(100), whole=True, late=False) == (False, False)
    assert store.kept == {}


def test_those_named_later_are_kept_from_before_the_onset() -> None:
    usage = Channel("cpu.subject.usage", "a/b", Kind.COUNTER)
    table = ChannelTable((*TABLE.fast, usage), TABLE.slow)
    identity = Identity("a/b", SubjectKind.POD, "u", "a", "b")
    source = ListedSlices(slices(200, table), 110, [identity])
    work, store = writer(source)
    work.step(finding(100), whole=True, late=False)
    source.now = 130
    pod = Pod("a", "b", "u", "", 50, 40, Confidence.MEASURED)
    work.step(finding(100, pods=(pod,)), whole=True, late=False)
    entries = list(RecordingReader(Path("r"), store.kept["cpu-0123456789"]))
    [table_kept] = {entry.table.key: entry.table for entry in entries if entry.table}.values()
    assert usage in table_kept.fast
    notes: dict[str, Any] = {}
    for entry in entries:
        notes |= entry.note or {}
    assert notes["subjects"][0]["instance"] == "a/b"
    assert notes["finding"]["pods"][0]["name"] == "b"


def test_what_the_stream_dropped_of_the_begin_stays_kept() -> None:
    source = ListedSlices(slices(400), now=110)
    work, store = writer(source)
    work.step(finding(100), whole=True, late=False)
    source.now = 190  # the stream begins at second 70
    work.step(finding(100), whole=True, late=False)
    assert set(ticks(store)) == set(range(40, 190))


def test_a_damaged_recording_is_replaced() -> None:
    source = ListedSlices(slices(200), now=110)
    work, store = writer(source)
    store.kept["cpu-0123456789"] = b"damaged"
    work.step(finding(100), whole=False, late=False)
    assert set(ticks(store)) == set(range(40, 110))


def test_the_row_of_an_unfinished_finding_is_json() -> None:
    source = ListedSlices(slices(200), now=110)
    work, store = writer(source)
    work.step(finding(100), whole=True, late=False)
    assert json.loads(json.dumps(store.left)) == store.left


def test_a_culprit_that_has_ended_is_kept() -> None:
    usage = Channel("cpu.subject.usage", "/gone.service", Kind.COUNTER)
    table = ChannelTable((*TABLE.fast, usage), TABLE.slow)
    later = slices(130)
    source = ListedSlices([*slices(115, table), *later[115:]], now=130)
    work, store = writer(source)
    culprit = Subject("Unit", "/gone.service", 50, 40, Confidence.MEASURED)
    work.step(finding(100, subjects=(culprit,)), whole=True, late=False)
    entries = RecordingReader(Path("r"), store.kept["cpu-0123456789"])
    tables = [entry.table for entry in entries if entry.table]
    assert [usage in each.fast for each in tables] == [True] * 75 + [False] * 15
