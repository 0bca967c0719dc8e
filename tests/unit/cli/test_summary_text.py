"""Text output: the table, the closing lines and the progress block."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_cli.errors import DONE, FOUND
from reveal_cli.findings_table import advice, evidence_text, findings_table, subject_text
from reveal_cli.progress import BAR, Quiet, Terminal, View, bar, block, open_progress
from reveal_cli.summary_text import Seen, closing, exit_code
from reveal_contract.finding import (
    Confidence,
    Evidence,
    Finding,
    Hypothesis,
    Severity,
    State,
    Subject,
)
from reveal_contract.metric import Subsystem

SUMMARY = Seen(watched=180, judged=120, warmup=60, slices=180, channels=702)


def finding(claim: str = "waiting for CPU rose", subject: str = "/a.slice/b.service") -> Finding:
    return Finding(
        id="cpu-1", node_name="n", subsystem=Subsystem.CPU, severity=Severity.HIGH,
        state=State.OPEN, first_seen_ns=1_700_000_000_000_000_000,
        last_seen_ns=1_700_000_009_000_000_000, claim=claim,
        evidence=(Evidence("cpu.pressure.some", "mean", "", "930000000", "5e7", "ns/s", "up"),),
        subjects=(Subject("Cgroup", subject, 87, 60, Confidence.MEASURED),),
        hypothesis=Hypothesis("cpu-contention", 80, "give the job CPUs of its own"),
    )  # fmt: skip


@given(st.text(max_size=400), st.text(max_size=200), st.integers(0, 300))
def test_no_line_of_the_table_is_too_wide(claim: str, subject: str, width: int) -> None:
    lines = findings_table([finding(claim, subject)], width)
    assert all(len(line) <= max(80, min(width, 120)) for line in lines)


def test_the_table_shows_all_that_was_found() -> None:
    text = " ".join(" ".join(findings_table([finding()])).split())
    for word in ("CPU", "High", "Open", "waiting for CPU", "/a.slice/b.service", "cpu.pressure"):
        assert word in text


def test_evidence_and_subject_in_words() -> None:
    plain = Evidence("storage.disk.reads", "mean", "vda", "80", "", "ops/s", "up")
    foreign = Evidence("tomorrow.metric", "mean", "", "80", "7", "widgets", "up")
    assert evidence_text(finding().evidence[0]) == "cpu.pressure.some 93 % (usual 5 %)"
    assert evidence_text(plain) == "storage.disk.reads{vda} 80/s"
    assert evidence_text(foreign) == "tomorrow.metric 80 widgets (usual 7 widgets)"
    assert subject_text(finding()) == "/a.slice/b.service"


def test_advice_is_given_once_a_hypothesis() -> None:
    assert advice([finding(), finding()]) == ["cpu-contention: give the job CPUs of its own"]


def test_no_findings_prints_what_was_watched() -> None:
    line = " ".join(closing([], SUMMARY))
    assert line.startswith("Nothing is wrong")
    assert "2m00s judged after 1m00s of learning, 180 slices of 702 channels, none lost" in line


def test_nothing_judged_is_never_called_healthy() -> None:
    line = " ".join(closing([], Seen(watched=20, judged=0, warmup=60, slices=20, channels=702)))
    assert line.startswith("Nothing was judged")
    assert "wrong" not in line


def test_losses_load_and_blind_spots_are_printed() -> None:
    summary = Seen(
        watched=180, judged=120, warmup=60, slices=160, channels=702, lost=20, away=20.0,
        load={"cpu.busy": 1.7, "cpu.pressure.some": 0.85},
        missing=[{"source": "perf", "reason": "needs root"}],
    )  # fmt: skip
    text = " ".join(" ".join(closing([finding()], summary)).split())
    for part in (
        "20 lost",
        "Redis was away for 20s",
        "1.7 cores busy",
        "85% of the time waiting for cpu",
        "quieter host",
        "perf (needs root)",
        "1 finding",
    ):
        assert part in text


@pytest.mark.parametrize(
    ("fail_on", "code"),
    [(None, DONE), (Severity.LOW, FOUND), (Severity.HIGH, FOUND), (Severity.CRITICAL, DONE)],
)
def test_fail_on_is_a_minimum_severity(fail_on: Severity | None, code: int) -> None:
    assert exit_code([finding()], fail_on) == code
    assert exit_code([], fail_on) == DONE


@given(st.floats(0, 1e6))
def test_a_bar_has_a_fixed_width_and_marks_the_threshold(over: float) -> None:
    cells = bar(over)
    assert len(cells) == BAR + 1
    assert ("·" not in cells.partition("│")[0]) == (over > 0.96875)


def view(**changes: object) -> View:
    base = {"node": "n", "phase": "watching", "elapsed": 72.0, "duration": 180.0}
    return View(**{**base, **changes})  # type: ignore[arg-type]


def test_the_block_shows_the_progress() -> None:
    lines = block(
        view(slices=72, channels=702, lost=2, findings=1, over={Subsystem.CPU: 1.2},
             suspected=["a", "b", "c", "d"], changed=["x"], trouble="Redis is away since 3 s"),
        100,
    )  # fmt: skip
    assert lines[0] == (
        "reveal · n · 1m12s of 3m00s · watching · 72 slices of 702 channels, 2 lost · 1 finding"
    )
    text = "\n".join(lines)
    for part in ("CPU", "1.20", "suspected", "and 1 more", "changed", "Redis is away"):
        assert part in text


def test_the_block_fits_its_width_and_has_no_colour_unless_asked() -> None:
    full = view(over=dict.fromkeys(Subsystem, 2.0), suspected=["s" * 300])
    assert all(len(line) <= 60 for line in block(full, 60))
    assert "\x1b" not in "".join(block(full, 60))
    assert "\x1b[31m" in "".join(block(full, 60, paint=True))


def test_a_pipe_gets_warnings_only() -> None:
    stream = io.StringIO()
    progress = open_progress(stream)
    assert isinstance(progress, Quiet)
    progress.show(view())
    progress.event("found")
    progress.say("Redis is away")
    assert stream.getvalue() == "reveal: Redis is away\n"


def test_the_terminal_draws_over_its_block_and_leaves_events_standing() -> None:
    stream = io.StringIO()
    terminal = Terminal(stream, paint=False)
    terminal.show(view(over={Subsystem.CPU: 0.5}))
    drawn = stream.getvalue().count("\n")
    terminal.event("found")
    assert stream.getvalue().split(f"\x1b[{drawn}A\r\x1b[J")[1] == "found\n"
    terminal.show(view())
    terminal.clear()
    assert stream.getvalue().endswith("\x1b[1A\r\x1b[J")
