"""When the demo starts and ends its fault, and which findings count as found."""

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest

from reveal_cli.__main__ import main
from reveal_cli.commands.demo import FaultSchedule, fault_list
from reveal_cli.errors import DONE, USAGE
from reveal_cli.faults import FAULTS, Fault, FaultTarget, Injection
from reveal_cli.finding_log import FindingLog
from reveal_cli.live_session import ScanState
from reveal_cli.progress import PlainProgress
from reveal_cli.terminal import plain_text
from reveal_contract.finding import Finding, FindingChange, FindingUpdate
from reveal_contract.metric import Subsystem
from support import finding_factory

SECOND = 10**9


def finding(second: float, *areas: Subsystem) -> Finding:
    onset = int(second * SECOND)
    return finding_factory.finding(
        f"id-{onset}", claim="claim", subsystem=areas[0], subsystems=areas,
        first_observed_ns=onset, last_observed_ns=onset + SECOND,
    )  # fmt: skip


@pytest.fixture
def calls() -> list[str]:
    return []


@pytest.fixture
def schedule(calls: list[str]) -> FaultSchedule:
    fault = Fault(
        "quiet", "nothing", frozenset({Subsystem.CPU}), "does nothing",
        lambda _: calls.append("start"),
    )  # fmt: skip
    result = FaultSchedule(fault, 40, PlainProgress())
    result.injection = Stopped(fault, calls)
    return result


class Stopped(Injection):
    def __init__(self, fault: Fault, calls: list[str]) -> None:
        super().__init__(fault, FaultTarget())
        self._calls = calls

    def start(self) -> None:
        self._calls.append("start")

    def stop(self) -> None:
        self._calls.append("stop")


def test_the_fault_comes_after_the_warm_up_and_goes_once(
    schedule: FaultSchedule, calls: list[str]
) -> None:
    for elapsed in (0, 49.9):
        schedule.on_tick(elapsed, ScanState())
    assert calls == []
    schedule.on_tick(50, ScanState())
    schedule.on_tick(69.9, ScanState())
    assert calls == ["start"]
    schedule.on_tick(70, ScanState())
    schedule.on_tick(71, ScanState())
    assert calls == ["start", "stop"]


def test_the_end_of_the_scan_ends_the_fault(schedule: FaultSchedule, calls: list[str]) -> None:
    schedule.on_tick(50, ScanState())
    schedule.on_tick(math.inf, ScanState())
    assert calls == ["start", "stop"]


def test_a_fault_that_never_began_stays_so_when_the_scan_ends(
    schedule: FaultSchedule, calls: list[str]
) -> None:
    schedule.on_tick(math.inf, ScanState())
    assert calls == []
    assert "before the fault began" in plain_text(*schedule.verdict([]))


@pytest.mark.parametrize(
    ("findings", "text"),
    [
        ([finding(103, Subsystem.CPU)], "claim"),
        ([finding(98, Subsystem.CPU)], "nothing: the demo failed"),
        ([finding(126, Subsystem.CPU)], "nothing: the demo failed"),
        ([finding(103, Subsystem.MEMORY)], "nothing: the demo failed"),
        ([finding(103, Subsystem.MEMORY, Subsystem.CPU)], "another fault"),
        ([], "nothing: the demo failed"),
    ],
)
def test_only_a_finding_of_its_area_and_time_counts(
    schedule: FaultSchedule, findings: Sequence[Finding], text: str
) -> None:
    schedule.onset_ns, schedule.end_ns = 100 * SECOND, 120 * SECOND
    assert bool(schedule.matching(findings)) == (text == "claim")
    assert text in plain_text(*schedule.verdict(findings))


def test_the_seconds_to_the_finding_are_counted_from_the_onset(schedule: FaultSchedule) -> None:
    log = FindingLog()
    state = ScanState(finding_log=log)
    schedule.on_tick(50, state)
    assert schedule.found_after is None
    opened = replace(finding(1, Subsystem.CPU), first_observed_ns=schedule.onset_ns)
    log.update([FindingUpdate(FindingChange.OPENED, opened)])
    schedule.on_tick(55, state)
    assert schedule.found_after is not None
    assert 0 <= schedule.found_after < 5


def test_the_list_names_every_fault() -> None:
    lines = plain_text(fault_list(FAULTS)).splitlines()[2:]
    listed = [line.split()[0] for line in lines if not line.startswith(" ")]
    assert listed == [fault.name for fault in FAULTS]


def test_a_fault_that_other_programs_notice_needs_permission(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["demo", "--fault", "backlog_drop"]) == USAGE
    assert "all connections of this host" in capsys.readouterr().err
    assert "Needs --host-wide" in plain_text(fault_list(FAULTS))


def test_an_unknown_fault_is_wrong_usage(
    capsys: pytest.CaptureFixture[str], own_signals: None
) -> None:
    assert main(["demo", "--fault", "gremlins"]) == USAGE
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "'gremlins'" in error
    assert main(["demo", "--list"]) == DONE
