"""The file of known causes: every name exists, every mistake is one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from reveal_analyzer.hypotheses.schema import HypothesisError, load, parse
from reveal_contract import catalogue

HEAD = "version: 1\nhypotheses:\n"
ENTRY = """  - name: X
    subsystem: CPU
    claim: "c {value}"
    remediation: r
    expects: [{metric: cpu.busy}]
"""


def test_built_in_rules_name_only_explicit_rows_or_kernel_fields() -> None:
    explicit = {row.name for row in catalogue.rows()}
    named = {
        item.metric
        for rule in load()
        for item in (
            *rule.expects,
            *rule.contradicts,
            *(rule.certain.conditions if rule.certain else ()),
        )
    } | {name for rule in load() for name in rule.subjects}
    assert named - explicit <= {"memory.vm.workingset_refault_file"}


def test_every_built_in_claim_can_be_told() -> None:
    for rule in load():
        assert rule.claim.format(value="5 %")
        assert rule.expects, rule.name
        assert rule.remediation.endswith(".")


def test_a_users_file_adds_and_replaces(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(HEAD + ENTRY.replace("X", "OOMKill"))
    rules = {rule.name: rule for rule in load((str(path),))}
    assert rules["OOMKill"].claim == "c {value}"
    assert len(rules) == len(load())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [", "is not YAML"),
        ("version: 2", "version: 1"),
        (HEAD + ENTRY.replace("cpu.busy", "cpu.bussy"), "cpu.bussy is not in the catalogue"),
        (HEAD + ENTRY.replace("subsystem: CPU", "subsystem: Cpu"), "Cpu"),
        (HEAD + ENTRY.replace("    remediation: r\n", ""), "lacks remediation"),
        (HEAD + ENTRY.replace("cpu.busy}", "cpu.busy, abov: 3}"), "unknown key 'abov'; allowed are metric"),
        (HEAD + ENTRY + "    certain: {hold: [5, 3], all: []}\n", "hold"),
        (HEAD + "  - 5\n", "entry 1"),
    ],
)
def test_a_mistake_is_named(text: str, said: str) -> None:
    with pytest.raises(HypothesisError, match=said):
        parse(text, "mine.yaml")
