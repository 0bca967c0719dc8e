"""What a scan prints at its end, and its exit code."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from reveal_cli.errors import DONE, FOUND
from reveal_cli.summary_text import Coverage, exit_code, remedies_of, summary_blocks
from reveal_cli.terminal import plain_text
from reveal_contract.finding import Finding, Severity
from support.finding_factory import scan_finding

COVERAGE = Coverage(watched=180, judged=120, warmup=60, slices=180, channels=702)


def text(findings: Sequence[Finding], coverage: Coverage, hints: Sequence[Finding] = ()) -> str:
    """Return the summary as one line: paragraphs are wrapped."""
    return " ".join(plain_text(*summary_blocks(findings, coverage, hints)).split())


def test_a_remedy_is_printed_once_for_each_hypothesis() -> None:
    assert remedies_of([scan_finding(), scan_finding()]) == {
        "cpu-contention": "give the job CPUs of its own"
    }
    assert (
        text([scan_finding(), scan_finding()], COVERAGE).count("give the job CPUs of its own") == 1
    )


def test_a_scan_without_findings_states_what_it_is_based_on() -> None:
    line = text([], COVERAGE)
    assert line == (
        "Nothing is wrong, as far as can be seen: 2m00s judged after 1m00s of learning,"
        " 180 slices of 702 channels, none lost."
    )


def test_nothing_judged_is_never_called_healthy() -> None:
    line = text([], Coverage(watched=20, judged=0, warmup=60, slices=20, channels=702))
    assert line.startswith("Nothing was judged")
    assert "wrong" not in line


def test_losses_and_load_are_stated() -> None:
    coverage = Coverage(
        watched=180, judged=120, warmup=60, slices=160, channels=702, lost=20, redis_away=20.0,
        load={"cpu.busy": 1.7, "cpu.pressure.some": 0.85},
    )  # fmt: skip
    summary = text([scan_finding()], coverage)
    for part in (
        "20 lost",
        "Redis was unreachable for 20s",
        "1.7 cores busy",
        "85 % of the time waiting for cpu",
        "quieter host",
        "1 finding",
    ):
        assert part in summary


@pytest.mark.parametrize(
    ("count", "recorded", "line"),
    [
        (0, False, ""),
        (1, False, "Not available on this host: 1 source; `reveal doctor` lists them."),
        (22, False, "Not available on this host: 22 sources; `reveal doctor` lists them."),
        (2, True, "Not available on the recorded host: 2 sources; `reveal doctor` there lists"
         " them."),
    ],
)  # fmt: skip
def test_missing_sources_are_a_line_with_the_command_that_lists_them(
    count: int, recorded: bool, line: str
) -> None:
    coverage = Coverage(
        watched=180, judged=120, warmup=60, slices=180, channels=702,
        missing_sources=count, recorded=recorded,
    )  # fmt: skip
    lines = plain_text(*summary_blocks([], coverage)).splitlines()
    assert lines[1:] == ([line] if line else [])


def test_a_device_that_does_not_answer_is_named() -> None:
    coverage = replace(COVERAGE, unanswered=["nvml: has not answered since 12:03:05Z"])
    assert "Not read: nvml: has not answered since 12:03:05Z." in text([], coverage)


@pytest.mark.parametrize(
    ("fail_on", "code"),
    [(None, DONE), (Severity.LOW, FOUND), (Severity.HIGH, FOUND), (Severity.CRITICAL, DONE)],
)
def test_fail_on_needs_that_severity_or_more(fail_on: Severity | None, code: int) -> None:
    assert exit_code([scan_finding()], fail_on) == code
    assert exit_code([], fail_on) == DONE
