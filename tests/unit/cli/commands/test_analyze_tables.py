"""``reveal analyze`` and ``reveal explain`` on tables of other tools, called as users do."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reveal_cli.errors import DONE, ERROR, FOUND, USAGE
from support.analyze_command import recording, rows, run

START = 1_700_000_000  # 2023-11-14T22:13:20Z
ROWS, FIRST, LAST = 2000, 1700, 1740
NAMES = ("cpu_user", "cpu_system", "load_1", "mem_used", "disk_read", "net_rx", "tcp_retrans")

pytestmark = pytest.mark.usefixtures("own_signals")

Capture = pytest.CaptureFixture[str]


def values(fault: bool = True, seed: int = 1) -> np.ndarray:
    """Steady metrics; from FIRST to LAST all are unsteady, reads and retransmissions most."""
    random = np.random.default_rng(seed)
    result = 50 + random.normal(0, 1, (ROWS, len(NAMES)))
    if fault:
        size = np.full(len(NAMES), 8.0)
        size[NAMES.index("disk_read")], size[NAMES.index("tcp_retrans")] = 80, 40
        result[FIRST:LAST] += size * random.uniform(0.5, 1.5, (LAST - FIRST, len(NAMES)))
    return result


def table(
    path: Path,
    data: np.ndarray,
    names: tuple[str, ...] = NAMES,
    start: int = START,
    show: Callable[[int], str] = str,
) -> Path:
    with path.open("w") as file:
        file.write(f"time,{','.join(names)},always_empty\n")
        for row, numbers in enumerate(data.tolist()):
            file.write(f"{show(start + row)},{','.join(f'{number:.4f}' for number in numbers)},\n")
    return path


@pytest.fixture
def faulty(tmp_path: Path) -> Path:
    return table(tmp_path / "web-1.csv", values())


def overlaps(finding: dict[str, Any]) -> bool:
    return finding["firstSeenTime"] <= "2023-11-14T22:42:20" and (
        finding["lastSeenTime"] >= "2023-11-14T22:41:40"
    )


@pytest.mark.parametrize("mode", ["offline", "online", "paper"])
def test_a_fault_in_a_table_is_found_in_every_mode(
    faulty: Path, tmp_path: Path, capsys: Capture, mode: str
) -> None:
    findings, scores = tmp_path / "f.jsonl", tmp_path / "s.csv"
    assert (
        run("analyze", faulty, "--mode", mode, "--findings", findings, "--scores", scores) == DONE
    )
    found = [json.loads(line) for line in findings.read_text().splitlines()]
    (first, *_) = [finding for finding in found if overlaps(finding)]
    assert (first["nodeName"], first["subsystem"]) == ("web-1", "Storage")
    assert first["evidence"][0]["metric"] == "disk_read"
    assert len(first["evidence"]) == len(NAMES)  # ranked, and complete up to ten
    assert float(first["evidence"][0]["value"]) > float(first["evidence"][0]["baseline"])
    assert first["methods"]
    written = rows(scores)
    assert [row["time"] for row in written] == [str(START + second) for second in range(ROWS)]
    assert list(written[0])[:4] == ["time", "score", "threshold", "anomalous"]
    assert len(written[0]) > 4
    inside = [float(row["score"] or 0) for row in written[FIRST:LAST]]
    outside = [float(row["score"] or 0) for row in written[1500 : FIRST - 40]]
    assert np.mean(inside) > 2 * np.mean(outside)
    assert "1" in {row["anomalous"] for row in written[FIRST : LAST + 30]}
    output = capsys.readouterr()
    assert "disk_read" in output.out
    assert f"{ROWS} samples of {len(NAMES)} metrics" in output.out
    assert "left out, as they are always missing: always_empty" in output.err


def test_a_healthy_table_has_no_findings(tmp_path: Path, capsys: Capture) -> None:
    assert (
        run("analyze", table(tmp_path / "t.csv", values(fault=False)), "--fail-on", "low") == DONE
    )
    assert "Nothing is abnormal in 33m20s" in capsys.readouterr().out


def test_fail_on_and_json_are_as_for_recordings(faulty: Path, capsys: Capture) -> None:
    assert run("analyze", faulty, "--json", "--fail-on", "low") == FOUND
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert any(overlaps(finding) for finding in found)


@pytest.mark.parametrize("mode", ["offline", "online", "paper"])
def test_the_same_input_gives_the_same_bytes(
    faulty: Path, tmp_path: Path, capsys: Capture, mode: str
) -> None:
    outputs = []
    for again in ("a", "b"):
        files = [tmp_path / f"{again}.jsonl", tmp_path / f"{again}.csv"]
        run("analyze", faulty, "--mode", mode, "--findings", files[0], "--scores", files[1])
        outputs.append((*(path.read_bytes() for path in files), capsys.readouterr().out))
    assert outputs[0] == outputs[1]


def test_a_baseline_defines_what_is_normal(tmp_path: Path, capsys: Capture) -> None:
    healthy = table(tmp_path / "healthy.csv", values(fault=False, seed=2), start=START - 7200)
    shifted = values(fault=False)[:400]
    shifted[:, NAMES.index("mem_used")] += 30  # constant, so not abnormal within the run
    path = table(tmp_path / "t.csv", shifted)
    assert run("analyze", path, "--fail-on", "low") == DONE
    flags = ("--mode", "online", "--baseline", healthy, "--fail-on", "low", "--json")
    assert run("analyze", path, *flags) == FOUND
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line[0] == "{"]
    assert found[0]["evidence"][0]["metric"] == "mem_used"
    assert found[0]["subsystem"] == "Memory"


def test_a_table_too_short_to_judge_is_not_called_healthy(tmp_path: Path, capsys: Capture) -> None:
    path = table(tmp_path / "t.csv", values(fault=False)[:20])
    for mode in ("offline", "online"):
        assert run("analyze", path, "--mode", mode) == DONE
        assert "Nothing was judged" in capsys.readouterr().out


def test_online_mode_states_its_warm_up(tmp_path: Path, capsys: Capture) -> None:
    path = table(tmp_path / "t.csv", values())
    assert run("analyze", path, "--mode", "online") == DONE
    output = " ".join(capsys.readouterr().out.split())
    assert "the first 1440 samples (24m00s) are the baseline and have score 0" in output
    short = table(tmp_path / "s.csv", values(fault=False)[:600])
    assert run("analyze", short, "--mode", "online") == DONE
    output = " ".join(capsys.readouterr().out.split())
    assert "Nothing was judged: 600 samples" in output
    assert "--mode online learns from the first 1440 samples (24m00s) before it judges;" in output
    assert run("analyze", path, "--mode", "offline") == DONE
    assert "are the baseline" not in capsys.readouterr().out


def test_a_baseline_must_be_of_the_same_kind_and_have_columns_in_common(
    faulty: Path, tmp_path: Path, capsys: Capture
) -> None:
    other = table(tmp_path / "o.csv", values(), tuple(f"x{number}" for number in range(len(NAMES))))
    assert run("analyze", faulty, "--baseline", other) == ERROR
    assert "no column in common" in capsys.readouterr().err
    assert run("analyze", faulty, "--baseline", recording(tmp_path / "r.rvl", 20)) == USAGE
    assert "the baseline of a table must be a table" in capsys.readouterr().err
    assert run("explain", tmp_path / "r.rvl", "--span", "0/5", "--baseline", faulty) == USAGE
    assert "the baseline of a recording must be a recording" in capsys.readouterr().err


def test_windows_are_samples_or_time(faulty: Path, tmp_path: Path, capsys: Capture) -> None:
    scores = []
    for window, stride in (("40", "5"), ("40s", "5s"), ("20", "5")):
        out = tmp_path / "s.csv"
        flags = ("--mode", "paper", "--window", window, "--stride", stride, "--scores", out)
        assert run("analyze", faulty, *flags) == DONE
        scores.append(out.read_text())
    assert scores[0] == scores[1] != scores[2]
    assert run("analyze", faulty, "--window", "1") == USAGE
    assert "a window has at least" in capsys.readouterr().err


def test_scores_need_a_single_file(faulty: Path, tmp_path: Path, capsys: Capture) -> None:
    assert run("analyze", faulty, faulty, "--scores", tmp_path / "s.csv") == USAGE
    assert "takes one FILE" in capsys.readouterr().err
    assert run("analyze", faulty, "--scores", tmp_path / "none" / "s.csv") == ERROR
    assert "cannot write" in capsys.readouterr().err


def test_each_input_row_gets_its_score_whatever_its_order(tmp_path: Path) -> None:
    lines = table(tmp_path / "t.csv", values()).read_text().splitlines(keepends=True)
    shuffled = tmp_path / "u.csv"
    shuffled.write_text(lines[0] + "".join(reversed(lines[1:])) + lines[1])
    for name in ("t", "u"):
        run("analyze", tmp_path / f"{name}.csv", "--scores", tmp_path / f"{name}.scores")
    plain, turned = rows(tmp_path / "t.scores"), rows(tmp_path / "u.scores")
    assert turned == [*reversed(plain), plain[0]]


def test_several_hosts_are_judged_separately(tmp_path: Path, capsys: Capture) -> None:
    names = tuple(f"{host}.{name}" for host in ("n1", "n2") for name in NAMES)
    both = np.hstack([values(fault=False, seed=3), values()])
    path, scores = table(tmp_path / "t.csv", both, names), tmp_path / "s.csv"
    assert run("analyze", path, "--json", "--scores", scores) == DONE
    output = capsys.readouterr()
    assert "host names in column names: n1, n2" in output.err
    found = [json.loads(line) for line in output.out.splitlines()]
    assert {finding["nodeName"] for finding in found if overlaps(finding)} == {"n2"}
    worst = max(rows(scores), key=lambda row: float(row["score"]))
    assert (worst["node"], worst["threshold"], worst["anomalous"]) == ("n2", "1", "1")


@pytest.mark.parametrize(
    "content",
    ["time,a,b\n1,2,3\n", "time,a\n" + "1,5\n" * 30, "a\n" + "nan\ninf\n7\n" * 3,
     "time,a,b\n" + "".join(f"{row},5,{row % 2}\n" for row in range(200))],
)  # fmt: skip
@pytest.mark.parametrize("mode", ["offline", "online", "paper"])
def test_poor_tables_are_judged_without_an_exception(
    tmp_path: Path, capsys: Capture, content: str, mode: str
) -> None:
    path = tmp_path / "t.csv"
    path.write_text(content)
    scores = tmp_path / "s.csv"
    assert run("analyze", path, "--mode", mode, "--scores", scores) == DONE
    assert len(rows(scores)) == content.count("\n") - 1
    assert capsys.readouterr().out.startswith("Nothing ")


@pytest.mark.parametrize(
    ("content", "message"),
    [("time,a\n", "holds no rows"), ("time,a\n1,x\n", "no column of numbers"),
     ("time,a\n1,2,3\n", "names 2 columns, but the rows below have 3")],
)  # fmt: skip
def test_a_table_that_cannot_be_read_is_an_error_in_a_sentence(
    tmp_path: Path, capsys: Capture, content: str, message: str
) -> None:
    path = tmp_path / "t.csv"
    path.write_text(content)
    for command in (("analyze", path), ("explain", path, "--span", "0/1")):
        assert run(*command) == ERROR
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert message in error


SPAN = f"{FIRST}/{LAST - 1}"
Explain = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def explain(capsys: Capture) -> Explain:
    def asked(*flags: object) -> list[dict[str, Any]]:
        assert run("explain", *flags, "--json") == DONE
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return asked


@pytest.mark.parametrize(
    "span", [SPAN, "28m20s/28m59s", "2023-11-14T22:41:40Z/2023-11-14T22:42:19Z"]
)
def test_explain_ranks_every_metric_of_a_span(faulty: Path, explain: Explain, span: str) -> None:
    (found,) = explain(faulty, "--span", span)
    assert (found["from"], found["to"]) == ("2023-11-14T22:41:40.000Z", "2023-11-14T22:42:19.000Z")
    assert {entry["metric"] for entry in found["ranking"]} == set(NAMES)
    first, second, *rest = found["ranking"]
    assert set(first) == {"metric", "feature", "subsystem", "scorePercent", "value", "baseline"}
    assert (first["metric"], first["subsystem"]) == ("disk_read", "Storage")
    assert (second["metric"], second["subsystem"]) == ("tcp_retrans", "Network")
    assert second["scorePercent"] > max(entry["scorePercent"] for entry in rest)
    assert float(first["value"]) > float(first["baseline"]) + 30


def test_clock_times_are_those_of_the_tables_own_zone(tmp_path: Path, explain: Explain) -> None:
    east = timezone(timedelta(hours=2))

    def show(second: int) -> str:
        return datetime.fromtimestamp(second, east).isoformat()

    path = table(tmp_path / "t.csv", values(), show=show)
    (found,) = explain(path, "--span", "0:41:40/0:42:19")
    assert (found["from"], found["to"]) == ("2023-11-14T22:41:40.000Z", "2023-11-14T22:42:19.000Z")
    assert found["ranking"][0]["metric"] == "disk_read"


def test_explain_takes_several_spans_and_a_baseline(
    faulty: Path, tmp_path: Path, explain: Explain
) -> None:
    healthy = table(tmp_path / "h.csv", values(fault=False, seed=2), start=START - 7200)
    quiet, loud = explain(faulty, "--span", "100/140", "--span", SPAN, "--baseline", healthy)
    assert quiet["from"] < loud["from"]
    assert loud["ranking"][0]["metric"] == "disk_read"
    assert loud["ranking"][0]["scorePercent"] > quiet["ranking"][0]["scorePercent"]


def test_explain_shows_the_first_fifteen(tmp_path: Path, capsys: Capture) -> None:
    names = tuple(f"cpu_metric_{number}" for number in range(40))
    data = np.random.default_rng(0).normal(0, 1, (200, 40))
    data[100:120, 7] += 30
    path = table(tmp_path / "t.csv", data, names)
    assert run("explain", path, "--span", "100/119") == DONE
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "2023-11-14T22:15:00.000Z to 2023-11-14T22:15:19.000Z"
    assert lines[1].split() == ["METRIC", "FEATURE", "SUBSYSTEM", "SCORE", "VALUE", "BASELINE"]
    assert lines[3].startswith("cpu_metric_7 ")
    assert lines[-1] == "and 25 more (--json prints all)"
    assert len(lines) == 19


def test_explain_refuses_a_span_without_samples(faulty: Path, capsys: Capture) -> None:
    for span, message in (("0.2/0.4", "has no sample"), ("5000/6000", "outside of the data")):
        assert run("explain", faulty, "--span", span) == ERROR
        assert message in capsys.readouterr().err


def test_values_of_a_recording_have_units(tmp_path: Path, capsys: Capture) -> None:
    path = recording(tmp_path / "r.rvl", 60)
    assert run("explain", path, "--span", "40/50") == DONE
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    (memory,) = [line for line in lines if line[:2] == ["memory.mem_available", "mean"]]
    assert memory[-4:] == ["12.1", "GiB", "12", "GiB"]


def test_recordings_are_explained_too(tmp_path: Path, explain: Explain) -> None:
    path = recording(tmp_path / "r.rvl", 150, range(100, 112))
    (found,) = explain(path, "--span", "100/111")
    assert found["from"] == "2023-11-14T22:15:00.000Z"
    first = {entry["metric"] for entry in found["ranking"][:6]}
    assert {"network.tcp.retrans_segs", "network.tcp.out_segs"} & first
    entry = next(e for e in found["ranking"] if e["metric"] == "network.nic.rx_bytes{eth0}")
    assert (entry["subsystem"], entry["feature"]) == ("Network", "mean")
    healthy = recording(tmp_path / "h.rvl", 90)
    (compared,) = explain(path, "--span", "100/111", "--baseline", healthy)
    assert len(compared["ranking"]) == len(found["ranking"])
