"""Which findings the form of ``reveal ui`` selects."""

from __future__ import annotations

import pytest

from reveal_cli.ui.selection import Selection
from reveal_cli.ui.source import ListedFinding
from reveal_contract.finding import Severity, State
from support.finding_factory import finding


def listed(key: str, job: str = "", **other: object) -> ListedFinding:
    return ListedFinding(key, finding(key, **other), job, "night-1")


FINDINGS = [
    listed("a", "ml/train", severity=Severity.HIGH, node_name="gpu-1"),
    listed("b", "ml/serve", severity=Severity.LOW, node_name="gpu-2"),
    listed("c", severity=Severity.CRITICAL, state=State.RESOLVED, node_name="gpu-2"),
]


@pytest.mark.parametrize(
    ("query", "keys"),
    [
        ({}, "abc"),
        ({"severity": ["High"]}, "ac"),
        ({"state": ["Open"]}, "ab"),
        ({"node": ["gpu-2"], "state": ["Resolved"]}, "c"),
        ({"job": ["ml/serve"]}, "b"),
        ({"text": [" TRAIN "]}, "a"),
        ({"text": ["night"]}, "abc"),
        ({"severity": ["Huge"], "state": ["?"]}, "abc"),
        ({"subsystem": ["Tape"]}, ""),
    ],
)
def test_fields_select_together(query: dict[str, list[str]], keys: str) -> None:
    assert "".join(each.key for each in Selection.of(query).apply(FINDINGS)) == keys


def test_a_field_is_bounded() -> None:
    assert len(Selection.of({"text": ["x" * 10_000]}).text) == 200
