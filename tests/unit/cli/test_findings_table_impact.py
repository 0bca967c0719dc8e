"""What a job lost, as people read it: in the table, and in the block while watching."""

from __future__ import annotations

from dataclasses import replace

from reveal_cli.findings_table import findings_table
from reveal_cli.progress import View, block
from reveal_contract.finding import Finding, Impact, Severity, State
from reveal_contract.metric import Subsystem

AT = 1_700_000_000_000_000_000
IMPACT = Impact("/train", 9.14, 8.04, 10.24, 1716.4, 1572.7, AT, 30, "cpu.subject.usage", 88)
BARE = Finding(
    "memory-1", "n", Subsystem.MEMORY, Severity.LOW, State.OPEN, AT, AT + 10**10, "it swaps"
)


def text(finding: Finding) -> str:
    """The table without its columns: claim cells are wrapped."""
    return " ".join(" ".join(findings_table([finding], 120)).split())


def test_the_table_says_what_a_finding_cost() -> None:
    shown = text(replace(BARE, impact=IMPACT))
    for word in ("swaps", "/train", "9.1", "(8.0", "10.2)"):
        assert word in shown


def test_a_slowdown_that_says_its_cost_itself_does_not_say_it_twice() -> None:
    claim = "Steps of /train take 1.57 s -> 1.72 s: 9.1 % slower since 22:13:20Z; cause not seen"
    assert text(replace(BARE, claim=claim, impact=IMPACT)).count("9.1") == 1


def test_a_finding_without_a_cost_is_shown_as_before() -> None:
    assert "longer" not in text(BARE)


def test_heartbeats_are_shown_while_watching() -> None:
    view = View("n", "watching", 60, 120, heartbeats=["/train: steps of 1.57 s, +0.2 % over 60 s"])
    assert any("/train: steps of 1.57 s" in line for line in block(view, 100))
    assert not any("heartbeat" in line for line in block(replace(view, heartbeats=()), 100))
