"""The table of findings: its width, its cells, and its form on a narrow terminal."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_cli.findings_table import (
    FindingsTable,
    evidence_text,
    gpu_hours_text,
    hours_text,
    subject_text,
)
from reveal_cli.terminal import plain_text
from reveal_contract.costs import Cost
from reveal_contract.finding import Evidence, Finding, Impact, Resolution, State
from support.finding_factory import ONSET_NS, scan_finding

IMPACT = Impact("/train", 9.14, 8.04, 10.24, 1716.4, 1572.7, ONSET_NS, 30, "cpu.subject.usage", 88)
COST = Cost(8, 0.857, 1.8004, 1.2, 2.4)
PRINTABLE = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=300)


def table(*findings: Finding, width: int = 120) -> str:
    return plain_text(FindingsTable(findings), width=width)


def words(text: str) -> str:
    """Return the text of a table without its columns: claims are wrapped."""
    return " ".join(text.split())


@given(PRINTABLE, PRINTABLE, st.integers(30, 160))
def test_no_line_is_wider_than_the_terminal(claim: str, subject: str, width: int) -> None:
    lines = table(scan_finding(claim, subject), width=width).splitlines()
    assert all(len(line) <= width for line in lines)


@pytest.mark.parametrize("width", [50, 99, 100, 120])
def test_every_field_is_printed_in_any_width(width: int) -> None:
    text = words(table(scan_finding(), width=width))
    for word in ("CPU", "High", "Open", "waiting for CPU", "/a.slice/b.ser", "cpu.pressure.some"):
        assert word in text


def test_a_narrow_terminal_gets_a_list_instead_of_a_table() -> None:
    assert table(scan_finding(), width=99).splitlines()[1].split() == ["subsystem", "CPU"]
    assert table(scan_finding(), width=100).splitlines()[0].split()[:2] == ["TIME", "SUBSYSTEM"]


def test_text_that_looks_like_markup_is_printed_as_it_is() -> None:
    assert "[bold]x[/bold] :smile:" in words(table(scan_finding("[bold]x[/bold] :smile:")))


def test_days_are_printed_where_the_findings_are_of_several() -> None:
    later = replace(scan_finding(), first_observed_ns=ONSET_NS + 3 * 86_400 * 10**9)
    assert "Nov" not in table(scan_finding())
    assert words(table(scan_finding(), later)).count("Nov") == 2


@pytest.mark.parametrize(
    ("resolution", "state"),
    [
        (Resolution.ENDED, "Resolved"),
        (Resolution.UNOBSERVED, "Unobserved"),
        (Resolution.STOPPED, "Stopped"),
        (Resolution.ACCEPTED, "Accepted"),
    ],
)
def test_only_a_finding_that_ended_is_called_resolved(resolution: Resolution, state: str) -> None:
    over = replace(scan_finding(), state=State.RESOLVED, resolution=resolution)
    assert state in words(table(over))
    assert "Open" in words(table(replace(scan_finding(), state=State.OPEN)))


def test_evidence_and_subject_as_text() -> None:
    plain = Evidence("storage.disk.reads", "mean", "vda", "80", "", "ops/s", "up")
    unknown = Evidence("tomorrow.metric", "mean", "", "80", "7", "widgets", "up")
    assert evidence_text(scan_finding().evidence[0]) == "cpu.pressure.some 93 % (baseline 5 %)"
    assert evidence_text(plain) == "storage.disk.reads{vda} 80/s"
    assert evidence_text(unknown) == "tomorrow.metric 80 widgets (baseline 7 widgets)"
    assert subject_text(scan_finding()) == "/a.slice/b.service"


def test_the_claim_is_followed_by_the_slowdown_of_the_job() -> None:
    text = words(table(replace(scan_finding("it swaps"), impact=IMPACT)))
    for word in ("swaps", "/train", "9.1", "(8.0", "10.2)"):
        assert word in text
    assert "longer" not in table(scan_finding("it swaps"))


@pytest.mark.parametrize(
    ("hours", "text"), [(0.0, "0"), (0.0004, "0"), (0.0034, "0.003"), (0.5, "0.5"), (0.9999, "1"),
                        (1.0, "1.0"), (123.44, "123.4")],
)  # fmt: skip
def test_short_costs_have_more_digits(hours: float, text: str) -> None:
    assert hours_text(hours) == text


def test_the_cost_is_a_line_with_its_interval_and_the_present_rate() -> None:
    costly = replace(scan_finding(), cost=COST)
    line = "1.8 GPU-hours so far (1.2 to 2.4), 0.9 of 8 GPUs"
    assert gpu_hours_text(costly) == line
    assert f"cost: {line}" in words(table(costly, width=90))  # a list of fields
    assert gpu_hours_text(replace(costly, state=State.RESOLVED)) == "1.8 GPU-hours (1.2 to 2.4)"
    assert gpu_hours_text(scan_finding()) == ""
    assert "GPU" not in table(scan_finding())


def test_a_claim_that_states_the_slowdown_is_printed_alone() -> None:
    claim = "Steps of /train take 1.57 s -> 1.72 s: 9.1 % slower since 22:13:20Z; cause not seen"
    assert words(table(replace(scan_finding(claim), impact=IMPACT))).count("9.1") == 1


@pytest.mark.parametrize(
    ("sample_s", "length"), [(300.0, "for 5m00s"), (0.01, "for 0.01s"), (0.0, "for 1s")]
)
def test_a_finding_of_a_single_sample_lasts_as_long_as_the_sample(
    sample_s: float, length: str
) -> None:
    single = replace(scan_finding(), last_observed_ns=ONSET_NS, first_observed_ns=ONSET_NS)
    text = plain_text(FindingsTable([single], sample_s=sample_s), width=90)  # a list of fields
    assert length in words(text)
