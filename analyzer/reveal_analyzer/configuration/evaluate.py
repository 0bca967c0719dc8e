"""From facts to findings: all rules, and those that the facts of a node break."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Iterator

from reveal_analyzer.configuration import cpu, devices, gpu, memory, network
from reveal_analyzer.configuration.rule import Broken, Rule
from reveal_contract.facts import Facts
from reveal_contract.finding import Finding, FindingKind, Hypothesis, State

log = logging.getLogger(__name__)

RULES: tuple[Rule, ...] = (
    *cpu.RULES, *memory.RULES, *devices.RULES, *network.RULES, *gpu.RULES
)  # fmt: skip


def judge(facts: Facts, at_ns: int, rules: Iterable[Rule] = RULES) -> list[Finding]:
    """A finding for each object that breaks a rule, in the order of the rules."""
    return [_finding(facts, rule, broken, at_ns) for rule, broken in _broken(facts, rules)]


def _broken(facts: Facts, rules: Iterable[Rule]) -> Iterator[tuple[Rule, Broken]]:
    for rule in rules:
        try:
            yield from ((rule, broken) for broken in rule.check(facts))
        except Exception as error:  # facts that no rule foresaw must not cost the other rules
            log.warning("%s cannot be judged on %s: %s", rule.name, facts.node, error)


def _finding(facts: Facts, rule: Rule, broken: Broken, at_ns: int) -> Finding:
    subsystem = broken.subsystem or rule.subsystem
    claim = rule.claim.format(**broken.values)
    return Finding(
        id=finding_id(facts.node, rule.name, broken.what),
        node_name=facts.node,
        kind=FindingKind.CONFIGURATION,
        subsystem=subsystem,
        subsystems=(subsystem,),
        severity=broken.severity or rule.severity,
        state=State.OPEN,
        first_seen_ns=at_ns,
        last_seen_ns=at_ns,
        claim=claim[:1].upper() + claim[1:],
        hypothesis=Hypothesis(rule.name, 100, rule.fix.format(**broken.values)),
        evidence=broken.evidence,
        subjects=broken.subjects,
        score_percent=100,
        confidence_percent=100,
        notes=(rule.reference,),
    )


def finding_id(node: str, rule: str, what: str) -> str:
    """The same for the same rule and object of a node, whoever finds it and whenever."""
    seed = f"{node}\0{rule}\0{what}".encode(errors="replace")
    return f"configuration-{hashlib.blake2b(seed, digest_size=5).hexdigest()}"
