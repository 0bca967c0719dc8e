"""``reveal report``: from a recording, and from the files of a scan, to a page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reveal_cli import recording_analysis
from reveal_cli.errors import DONE, ERROR, FOUND, USAGE
from reveal_cli.output_files import jsonl
from reveal_cli.recording_analysis import JudgedRecording
from reveal_cli.scan_directory import FINDINGS, RECORDING, REPORT, SUMMARY
from reveal_contract.settings import AnalyzerSettings
from support.analyze_command import recording, run
from support.finding_factory import scan_finding
from support.html_pages import ParsedPage

FAULT = range(80, 105)


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recording(tmp_path_factory.mktemp("r") / "r.rvl", 120, FAULT)


def test_a_recording_becomes_a_page_with_its_evidence(
    faulty: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "page.html"
    assert run("report", faulty, "-o", out, "--warmup", "30s", "--fail-on", "low") == FOUND
    assert capsys.readouterr().err == f"reveal: {out} is written\n"
    page = ParsedPage(out.read_text())
    assert "retransmitted" in page.visible
    assert "ruled out" in page.visible
    [article, *_] = page.all("article")
    assert article.attributes["id"] == "finding-1"
    panels = [each for each in page.all("figure") if each.attributes["class"] == "chart"]
    assert any("network.tcp.retrans" in each.text for each in page.all("bdi"))
    assert panels
    [block] = page.all("script", id="brush-json")
    brush = json.loads(block.text)
    assert brush["bins"] == 120
    assert any(series["label"].startswith("network.tcp.retrans") for series in brush["series"])


def test_a_quiet_recording_has_a_page_without_findings(tmp_path: Path) -> None:
    path = recording(tmp_path / "r.rvl", 30)
    assert run("report", path, "-o", tmp_path / "p.html", "--warmup", "10s") == DONE
    [headline] = ParsedPage((tmp_path / "p.html").read_text()).all("h1")
    assert headline.text == "No finding"


def test_the_files_of_a_scan_become_a_page_of_its_findings(tmp_path: Path) -> None:
    recording(tmp_path / RECORDING, 30)
    (tmp_path / FINDINGS).write_text(jsonl([scan_finding("the claim of the scan")]))
    (tmp_path / SUMMARY).write_text(json.dumps({"node": "n1", "slices": {"received": 30}}))
    assert run("report", tmp_path, "-o", tmp_path / REPORT) == DONE
    assert "the claim of the scan" in (tmp_path / REPORT).read_text()
    # it may be written again: the page is no input; the same input gives the same page
    before = (tmp_path / REPORT).read_bytes()
    assert run("report", tmp_path, "-o", tmp_path / REPORT) == DONE
    assert (tmp_path / REPORT).read_bytes() == before


def test_the_flags_of_judging_are_those_of_analyze(
    faulty: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out, given = tmp_path / "p.html", []
    judge = recording_analysis.judge

    def noted(path: Path, settings: AnalyzerSettings) -> JudgedRecording:
        given.append((settings.mode, settings.sensitivity, settings.warmup_seconds))
        return judge(path, settings)

    monkeypatch.setattr(recording_analysis, "judge", noted)
    flags = ("--warmup", "1m50s", "--mode", "paper", "--sensitivity", "high")
    assert run("report", faulty, "-o", out, *flags) in {DONE, FOUND}
    assert given == [("paper", "High", 110)]
    assert "10s judged" in out.read_text()
    missing = tmp_path / "none.yaml"
    assert run("report", faulty, "-o", out, "--hypotheses", missing) == USAGE
    assert "none.yaml" in capsys.readouterr().err


def test_flags_of_judging_are_refused_for_the_files_of_a_scan(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("report", tmp_path, "--sensitivity", "high", "--warmup", "10s") == USAGE
    assert "--sensitivity and --warmup cannot change" in capsys.readouterr().err


def test_an_input_is_never_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = recording(tmp_path / "r.rvl", 3)
    before = path.read_bytes()
    assert run("report", path, "-o", path) == USAGE
    assert "would be overwritten" in capsys.readouterr().err
    assert path.read_bytes() == before


def test_a_table_or_an_empty_directory_gives_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "t.csv"
    table.write_text("time,a\n1,2\n2,3\n")
    assert run("report", table, "-o", tmp_path / "p.html") == USAGE
    assert "is a table" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert run("report", tmp_path / "empty", "-o", tmp_path / "p.html") == ERROR
    assert f"has no {FINDINGS}" in capsys.readouterr().err
    assert not (tmp_path / "p.html").exists()
