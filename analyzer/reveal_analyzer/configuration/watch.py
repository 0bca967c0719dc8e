"""The configuration findings of a node over time: opened, changed, resolved."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from reveal_analyzer.configuration.evaluate import RULES, judge
from reveal_analyzer.configuration.rule import Rule
from reveal_contract.facts import Facts
from reveal_contract.finding import Finding, FindingChange, FindingUpdate, State


class Configuration:
    """The configuration findings of one node: opened once, resolved when the fact is mended."""

    def __init__(self, rules: Iterable[Rule] = RULES) -> None:
        self._rules = tuple(rules)
        self._open: dict[str, Finding] = {}

    @property
    def findings(self) -> list[Finding]:
        """What is open."""
        return list(self._open.values())

    def step(self, facts: Facts, at_ns: int) -> list[FindingUpdate]:
        """Take in the facts as they are at ``at_ns``; what stays is not said again."""
        updates = []
        now = {finding.id: finding for finding in judge(facts, at_ns, self._rules)}
        for identity, finding in now.items():
            before = self._open.get(identity)
            if before is None:
                self._open[identity] = finding
                updates.append(FindingUpdate(FindingChange.OPENED, finding))
                continue
            self._open[identity] = replace(finding, first_seen_ns=before.first_seen_ns)
            if finding.severity is not before.severity:
                updates.append(FindingUpdate(FindingChange.CHANGED, self._open[identity]))
        for identity in self._open.keys() - now.keys():
            mended = replace(
                self._open.pop(identity), state=State.RESOLVED, last_seen_ns=at_ns,
                resolved_ns=at_ns,
            )  # fmt: skip
            updates.append(FindingUpdate(FindingChange.RESOLVED, mended))
        return updates
