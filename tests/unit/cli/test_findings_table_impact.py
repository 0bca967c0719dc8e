"""The impact on a job: in the table, and in the progress block."""

from __future__ import annotations

from dataclasses import replace

from reveal_cli.findings_table import findings_table
from reveal_cli.progress import View, block
from reveal_contract.finding import Finding, Impact, Severity, State
from reveal_contract.metric import Subsystem

NOW_NS = 1_700_000_000_000_000_000
IMPACT = Impact("/train", 9.14, 8.04, 10.24, 1716.4, 1572.7, NOW_NS, 30, "cpu.subject.usage", 88)
BARE = Finding(
    "memory-1", "n", Subsystem.MEMORY, Severity.LOW, State.OPEN, NOW_NS, NOW_NS + 10**10, "it swaps"
)


def text(finding: Finding) -> str:
    """Return the table without its column layout, as claim cells are wrapped."""
    return " ".join(" ".join(findings_table([finding], 120)).split())


def test_the_table_has_the_impact_of_a_finding() -> None:
    output = text(replace(BARE, impact=IMPACT))
    for word in ("swaps", "/train", "9.1", "(8.0", "10.2)"):
        assert word in output


def test_a_slowdown_has_its_impact_only_once() -> None:
    claim = "Steps of /train take 1.57 s -> 1.72 s: 9.1 % slower since 22:13:20Z; cause not seen"
    assert text(replace(BARE, claim=claim, impact=IMPACT)).count("9.1") == 1


def test_a_finding_without_impact_has_no_impact_line() -> None:
    assert "longer" not in text(BARE)


def test_the_progress_block_has_heartbeats() -> None:
    view = View("n", "watching", 60, 120, heartbeats=["/train: steps of 1.57 s, +0.2 % over 60 s"])
    assert any("/train: steps of 1.57 s" in line for line in block(view, 100))
    assert not any("heartbeat" in line for line in block(replace(view, heartbeats=()), 100))
