"""What the demo expects, and when it reports that its fault was found."""

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest

from reveal_cli.__main__ import main
from reveal_cli.commands.demo import FaultTurn, menu
from reveal_cli.errors import DONE, USAGE
from reveal_cli.faults import FAULTS, Fault, FaultTarget, Injection
from reveal_cli.finding_log import FindingLog
from reveal_cli.live_session import Watched
from reveal_cli.progress import Quiet
from reveal_contract.finding import Finding, FindingChange, FindingUpdate, Severity, State
from reveal_contract.metric import Subsystem

SECOND = 10**9


def finding(second: float, *areas: Subsystem) -> Finding:
    time_ns = int(second * SECOND)
    return Finding(
        f"id-{time_ns}", "n", areas[0], Severity.HIGH, State.OPEN, time_ns, time_ns + SECOND,
        "claim", subsystems=areas,
    )  # fmt: skip


@pytest.fixture
def calls() -> list[str]:
    return []


@pytest.fixture
def turn(calls: list[str]) -> FaultTurn:
    fault = Fault(
        "quiet", "nothing", frozenset({Subsystem.CPU}), "does nothing",
        lambda _: calls.append("start"),
    )  # fmt: skip
    result = FaultTurn(fault, 40, Quiet())
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


def test_the_fault_comes_after_the_warm_up_and_goes_once(turn: FaultTurn, calls: list[str]) -> None:
    for elapsed in (0, 49.9):
        turn.act(elapsed, Watched())
    assert calls == []
    turn.act(50, Watched())
    turn.act(69.9, Watched())
    assert calls == ["start"]
    turn.act(70, Watched())
    turn.act(71, Watched())
    assert calls == ["start", "stop"]


def test_the_end_of_watching_ends_the_fault(turn: FaultTurn, calls: list[str]) -> None:
    turn.act(50, Watched())
    turn.act(math.inf, Watched())
    assert calls == ["start", "stop"]


def test_a_fault_that_never_started_is_not_started_on_exit(
    turn: FaultTurn, calls: list[str]
) -> None:
    turn.act(math.inf, Watched())
    assert calls == []
    assert "before the fault began" in turn.verdict([])[-1]


@pytest.mark.parametrize(
    ("findings", "expected"),
    [
        ([finding(103, Subsystem.CPU)], "claim"),
        ([finding(98, Subsystem.CPU)], "nothing of it"),
        ([finding(126, Subsystem.CPU)], "nothing of it"),
        ([finding(103, Subsystem.MEMORY)], "nothing of it"),
        ([finding(103, Subsystem.MEMORY, Subsystem.CPU)], "another trouble"),
        ([], "nothing of it"),
    ],
)
def test_only_a_finding_of_its_area_and_time_counts(
    turn: FaultTurn, findings: Sequence[Finding], expected: str
) -> None:
    turn.onset_ns, turn.end_ns = 100 * SECOND, 120 * SECOND
    assert bool(turn.caught(findings)) == (expected == "claim")
    assert expected in turn.verdict(findings)[-1]


def test_the_seconds_to_the_finding_are_counted_from_the_onset(turn: FaultTurn) -> None:
    ledger = FindingLog()
    watched = Watched(finding_log=ledger)
    turn.act(50, watched)
    assert turn.found_after is None
    opened = replace(finding(1, Subsystem.CPU), first_seen_ns=turn.onset_ns)
    ledger.take([FindingUpdate(FindingChange.OPENED, opened)])
    turn.act(55, watched)
    assert turn.found_after is not None
    assert 0 <= turn.found_after < 5


def test_the_menu_names_every_fault() -> None:
    lines = menu(FAULTS)
    assert len(lines) == len(FAULTS) + 1
    assert all(fault.name in line for fault, line in zip(FAULTS, lines[1:], strict=True))


def test_an_unknown_fault_is_wrong_usage(
    capsys: pytest.CaptureFixture[str], own_signals: None
) -> None:
    assert main(["demo", "--fault", "gremlins"]) == USAGE
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert "'gremlins'" in message
    assert main(["demo", "--list"]) == DONE
