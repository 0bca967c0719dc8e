"""Evaluation of all configuration rules on the facts of a node."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Iterator

from reveal_analyzer.configuration import cpu, devices, gpu, memory, network
from reveal_analyzer.configuration.rule import ConfigurationRule, Violation
from reveal_contract.facts import Facts
from reveal_contract.finding import Finding, FindingKind, Hypothesis, State

log = logging.getLogger(__name__)

RULES: tuple[ConfigurationRule, ...] = (
    *cpu.RULES, *memory.RULES, *devices.RULES, *network.RULES, *gpu.RULES
)  # fmt: skip


def evaluate(
    facts: Facts, time_ns: int, rules: Iterable[ConfigurationRule] = RULES
) -> list[Finding]:
    """Return a finding for each violation, in the order of the rules."""
    return [
        _finding(facts, rule, violation, time_ns) for rule, violation in _violations(facts, rules)
    ]


def _violations(
    facts: Facts, rules: Iterable[ConfigurationRule]
) -> Iterator[tuple[ConfigurationRule, Violation]]:
    for rule in rules:
        try:
            yield from ((rule, violation) for violation in rule.check(facts))
        except Exception as error:  # unexpected facts must not disable the other rules
            log.warning("rule %s cannot be evaluated on %s: %s", rule.name, facts.node, error)


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
