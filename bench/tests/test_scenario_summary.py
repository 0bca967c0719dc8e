from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from reveal_contract.channels import ChannelTable
from reveal_contract.subjects import SubjectKind
from scenariobench.findings_file import FindingsFile
from scenariobench.judge import COLUMNS
from scenariobench.subject_table import SubjectTable
from scenariobench.summary import Progress, Result, misses, table, totals, write
from support.synthetic_clips import CACHED, SWITCHES, USAGE


def _truth(**wrong: bool) -> dict[str, Any]:
    answers = {**dict.fromkeys(COLUMNS, True), "stated": None, **wrong}
    right = all(answer is not False for answer in answers.values())
    return {
        "timeline": "two/x", "truth": "storm#0", "answers": answers, "notes": ["why"],
        "right": right,
    }  # fmt: skip


def _result(*truths: dict[str, Any], checkout: str = "now", false: int = 0) -> Result:
    sentences = [f"finding {number}" for number in range(false)]
    return Result("two", "two/x", 17, 1800, checkout, list(truths), sentences)


def test_shares_are_of_what_applies() -> None:
    sums = totals([_result(_truth(), _truth(cause=False)), _result(_truth(stated=True), false=2)])
    assert (sums["columns"]["cause"]["hits"], sums["columns"]["cause"]["of"]) == (2, 3)
    assert (sums["columns"]["stated"]["hits"], sums["columns"]["stated"]["of"]) == (1, 1)
    assert (sums["all"]["hits"], sums["all"]["of"]) == (2, 3)
    assert sums["false"] == 2
    assert sums["hours"] == 1.0


def test_the_table_has_a_line_for_each_row_of_a_checkout() -> None:
    results = [_result(_truth()), _result(_truth(found=False), checkout="before")]
    lines = list(table(results, "before"))
    assert len(lines) == 2
    assert lines[1].split()[:3] == ["before:", "two", "1"]
    assert "0 %" in lines[1]


def test_a_miss_comes_with_the_way_to_play_it_alone() -> None:
    lines = list(misses([_result(_truth()), _result(_truth(values=False), false=1)], "now"))
    assert lines == [
        "two/x (seed 17): bench/scenarios --only two/x",
        "    storm#0: wrong: values",
        "        why",
        "    false: finding 0",
    ]


def test_results_so_far_are_read_again(tmp_path: Path) -> None:
    progress = Progress(tmp_path / "so-far")
    assert progress.load() == []
    progress.add([_result(_truth())])
    progress.add([_result(_truth(cause=False), checkout="before")])
    assert progress.load() == [
        _result(_truth()),
        _result(_truth(cause=False), checkout="before"),
    ]


def test_the_file_has_the_sums_of_each_checkout(tmp_path: Path) -> None:
    write(tmp_path / "x.json", [_result(_truth())], ["now"])
    content = json.loads((tmp_path / "x.json").read_text())
    assert content["rows"]["now"]["two"]["all"]["hits"] == 1
    assert content["timelines"][0]["seed"] == 17


def _line(identity: str, node: str = "n") -> bytes:
    row = {"id": identity, "nodeName": node, "kind": "Anomaly", "state": "Open"}
    return json.dumps(row).encode() + b"\n"


def test_rows_are_heard_between_two_seconds(tmp_path: Path) -> None:
    path = tmp_path / "findings.jsonl"
    path.write_bytes(_line("of an earlier timeline"))
    findings = FindingsFile(path, "n")
    findings.poll(7)
    with path.open("ab") as file:
        file.write(_line("a") + _line("b", "other") + _line("c")[:10])
    findings.poll(9)
    with path.open("ab") as file:
        file.write(_line("c")[10:])
    findings.poll(12)
    assert [(row.id, row.after, row.by) for row in findings.rows] == [("a", 7, 9), ("c", 9, 12)]


def test_step_times_of_spliced_seconds_are_not_judged(tmp_path: Path) -> None:
    path = tmp_path / "findings.jsonl"
    findings = FindingsFile(path, "n")
    row = {"id": "a", "nodeName": "n", "state": "Open", "claim": "Steps of /job take 2 s -> 3 s"}
    path.write_text(json.dumps(row) + "\n")
    findings.poll(3)
    assert findings.rows == []


def test_a_row_that_a_kill_truncated_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "findings.jsonl"
    findings = FindingsFile(path, "n")
    path.write_bytes(_line("a")[:20] + b"\n" + _line("b"))
    findings.poll(3)
    assert [row.id for row in findings.rows] == ["b"]


QUIET = ChannelTable((SWITCHES,), (CACHED,))
BUSY = ChannelTable((SWITCHES, USAGE), (CACHED,))


def test_a_cgroup_that_comes_back_is_another_pod() -> None:
    subjects, hour = SubjectTable(), 3600 * 10**9
    assert not subjects.update(QUIET, 10 * hour)
    assert subjects.update(BUSY, 11 * hour)
    (first,) = subjects.identities()
    assert (first.kind, first.namespace, first.name) == (SubjectKind.POD, "ml", "fault")
    assert (first.since_ns, first.until_ns) == (11 * hour, 0)
    assert subjects.update(QUIET, 12 * hour)
    assert subjects.identities()[0].until_ns == 12 * hour
    assert subjects.update(BUSY, 13 * hour)
    (second,) = subjects.identities()
    assert (second.since_ns, second.until_ns) == (13 * hour, 0)
    assert second.uid != first.uid


def test_what_is_there_from_the_start_is_older() -> None:
    subjects, hour = SubjectTable(), 3600 * 10**9
    assert subjects.update(BUSY, 10 * hour)
    assert subjects.identities()[0].since_ns == 9 * hour
    assert not subjects.update(BUSY, 10 * hour + 10**9)
