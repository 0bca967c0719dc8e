"""The lost time of recordings, as ``reveal analyze`` prints and writes it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from reveal_cli.errors import DONE, USAGE
from reveal_contract.recording import RecordingWriter
from reveal_contract.wire import encode, gauges
from support.analyze_command import run
from support.ledger_node import Times, ledger_node, ledger_values

pytestmark = pytest.mark.usefixtures("own_signals")

Capture = pytest.CaptureFixture[str]
JOB, HOG = "/job", "/hog"
CALM = {JOB: Times(run=0.9), HOG: Times(run=0.01)}
TAKEN = {JOB: Times(run=0.6, cpu={HOG: 0.2}), HOG: Times(run=1.5, threads=2)}
LINE = "{} lost 25 % of the time that it wanted: 25 % waiting for a CPU that {} used."


def recording(
    path: Path, times: Mapping[str, Times], nodes: Sequence[str] = ("n1",), note: object = None
) -> Path:
    """Write twenty seconds of nodes with a ledger."""
    sending = {name: ledger_node(JOB, HOG) for name in nodes}
    with RecordingWriter(path) as writer:
        for _ in range(20):
            for name, node in sending.items():
                message = replace(node.slice(ledger_values(times)), node=name)
                writer.message(encode(message, gauges(node.table)), node.table)
        writer.note({"collector": note or {}})
    return path


def closing(capsys: Capture) -> list[str]:
    """Return the lines about lost time, not wrapped."""
    text = " ".join(capsys.readouterr().out.split()).partition(" While learning")[0]
    return [f"Lost time{line}".strip() for line in text.split("Lost time")[1:]]


def test_a_recording_ends_with_what_each_job_lost(tmp_path: Path, capsys: Capture) -> None:
    assert run("analyze", recording(tmp_path / "r.rvl", TAKEN)) == DONE
    assert closing(capsys) == [f"Lost time: {LINE.format(JOB, HOG)}"]


def test_each_node_of_a_recording_is_named(tmp_path: Path, capsys: Capture) -> None:
    assert run("analyze", recording(tmp_path / "r.rvl", TAKEN, ("n1", "n2"))) == DONE
    assert closing(capsys) == [f"Lost time on {n}: {LINE.format(JOB, HOG)}" for n in ("n1", "n2")]


def test_the_baseline_does_not_count(tmp_path: Path, capsys: Capture) -> None:
    healthy = recording(tmp_path / "h.rvl", CALM)
    lost = recording(tmp_path / "r.rvl", TAKEN)
    assert run("analyze", lost, "--baseline", healthy) == DONE
    assert closing(capsys)[0] == f"Lost time: {LINE.format(JOB, HOG)}"
    assert run("analyze", healthy, "--baseline", lost) == DONE
    assert closing(capsys)[0].startswith("Lost time: none of 1 busy subject lost 1 %")


def test_lost_time_is_written_as_json_beside_json_findings(tmp_path: Path, capsys: Capture) -> None:
    path, written = recording(tmp_path / "r.rvl", TAKEN), tmp_path / "lost.jsonl"
    assert run("analyze", path, "--json", "--lost-time", written) == DONE
    assert all("id" in json.loads(line) for line in capsys.readouterr().out.splitlines())
    hog, job = sorted(map(json.loads, written.read_text().splitlines()), key=lambda r: r["subject"])
    assert job == {
        "nodeName": "n1", "subject": JOB, "desiredCPUs": 0.8, "lostShare": 0.25,
        "losses": [{"reason": "cpu", "culprit": HOG, "share": 0.25}],
    }  # fmt: skip
    assert (hog["subject"], hog["losses"]) == (HOG, [])


def test_why_a_recorded_host_has_no_ledger_is_stated(tmp_path: Path, capsys: Capture) -> None:
    missing = {"source": "ledger", "reason": "needs CAP_BPF and CAP_PERFMON", "remedy": ""}
    path = recording(tmp_path / "r.rvl", {}, note={"missing": [missing]})
    assert run("analyze", path) == DONE
    words = " ".join(capsys.readouterr().out.split())
    assert "Lost time is not known: needs CAP_BPF and CAP_PERFMON. Not available on" in words


def test_tables_have_no_lost_time(tmp_path: Path, capsys: Capture) -> None:
    table = tmp_path / "t.csv"
    table.write_text("cpu_user,mem_used\n" + "1,2\n3,4\n" * 20)
    assert run("analyze", table, "--lost-time", tmp_path / "lost.jsonl") == USAGE
    assert "--lost-time is for recordings" in capsys.readouterr().err
