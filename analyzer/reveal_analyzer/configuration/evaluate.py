"""Evaluation of all configuration rules on the facts of a node."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from reveal_analyzer.configuration import cpu, devices, gpu, memory, network
from reveal_analyzer.configuration.rule import (
    ALL,
    ConfigurationRule,
    Unknown,
    Verdict,
    Violation,
)
from reveal_contract.facts import Facts
from reveal_contract.finding import Finding, FindingKind, Hypothesis, State

log = logging.getLogger(__name__)

RULES: tuple[ConfigurationRule, ...] = (
    *cpu.RULES, *memory.RULES, *devices.RULES, *network.RULES, *gpu.RULES
)  # fmt: skip


@dataclass(frozen=True)
class Evaluation:
    """The violations of all rules, and of what it is unknown whether it is one."""

    findings: tuple[Finding, ...]
    unknown_ids: frozenset[str]
    unknown_rules: frozenset[str]

    def is_unknown(self, finding: Finding) -> bool:
        """Return whether the facts behind an open finding cannot be read now."""
        rule = finding.hypothesis.name if finding.hypothesis is not None else ""
        return finding.id in self.unknown_ids or rule in self.unknown_rules


def evaluate(
    facts: Facts, time_ns: int, rules: Iterable[ConfigurationRule] = RULES
) -> list[Finding]:
    """Return a finding for each violation, in the order of the rules."""
    return list(evaluate_all(facts, time_ns, rules).findings)


def evaluate_all(
    facts: Facts, time_ns: int, rules: Iterable[ConfigurationRule] = RULES
) -> Evaluation:
    """Return the violations in the order of the rules, and what cannot be evaluated."""
    findings: list[Finding] = []
    unknown_ids: set[str] = set()
    unknown_rules: set[str] = set()
    for rule in rules:
        for verdict in _verdicts(facts, rule):
            if isinstance(verdict, Violation):
                findings.append(_finding(facts, rule, verdict, time_ns))
            elif verdict.what == ALL:
                unknown_rules.add(rule.name)
            else:
                unknown_ids.add(finding_id(facts.node, rule.name, verdict.what))
    return Evaluation(tuple(findings), frozenset(unknown_ids), frozenset(unknown_rules))


def _verdicts(facts: Facts, rule: ConfigurationRule) -> Iterator[Verdict]:
    if not rule.is_checkable(facts):
        yield Unknown(ALL)
        return
    try:
        yield from rule.check(facts)
    except Exception as error:  # unexpected facts must not disable the other rules
        log.warning("rule %s cannot be evaluated on %s: %s", rule.name, facts.node, error)
        yield Unknown(ALL)


def _finding(facts: Facts, rule: ConfigurationRule, violation: Violation, time_ns: int) -> Finding:
    subsystem = violation.subsystem or rule.subsystem
    claim = rule.claim.format(**violation.values)
    return Finding(
        id=finding_id(facts.node, rule.name, violation.what),
        node_name=facts.node,
        kind=FindingKind.CONFIGURATION,
        subsystem=subsystem,
        subsystems=(subsystem,),
        severity=violation.severity or rule.severity,
        state=State.OPEN,
        first_observed_ns=time_ns,
        last_observed_ns=time_ns,
        claim=claim[:1].upper() + claim[1:],
        hypothesis=Hypothesis(rule.name, 100, rule.fix.format(**violation.values)),
        evidence=violation.evidence,
        subjects=violation.subjects,
        score_percent=100,
        confidence_percent=100,
        notes=(rule.reference,),
    )


def finding_id(node: str, rule: str, what: str) -> str:
    """Return the id: the same for the same rule and object of a node, whoever finds it."""
    seed = f"{node}\0{rule}\0{what}".encode(errors="replace")
    return f"configuration-{hashlib.blake2b(seed, digest_size=5).hexdigest()}"
