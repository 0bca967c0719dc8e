"""Configuration findings of a node over time: opened, changed, resolved."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from reveal_analyzer.configuration.evaluate import RULES, evaluate
from reveal_analyzer.configuration.rule import ConfigurationRule
from reveal_analyzer.state.records import restore_record, save_record
from reveal_analyzer.state.tree import StateTree, sections
from reveal_contract.facts import Facts
from reveal_contract.finding import Finding, FindingChange, FindingUpdate, Resolution, State


class ConfigurationTracker:
    """Configuration findings of one node: opened once, resolved when the setting is corrected."""

    def __init__(self, rules: Iterable[ConfigurationRule] = RULES) -> None:
        self._rules = tuple(rules)
        self._open: dict[str, Finding] = {}
        self._unreported: set[str] = set()  # restored: this process has not reported them yet

    @property
    def findings(self) -> list[Finding]:
        """The open findings."""
        return list(self._open.values())

    def save(self) -> StateTree:
        """Return the open findings."""
        return {"open": [save_record(finding) for finding in self._open.values()]}

    def restore(self, tree: StateTree) -> None:
        """Continue with the open findings of another process; raises ``StateError``."""
        found = [restore_record(Finding, each) for each in sections(tree, "open")]
        self._open = {finding.id: finding for finding in found}
        self._unreported = set(self._open)

    def update(self, facts: Facts, time_ns: int) -> list[FindingUpdate]:
        """Evaluate the facts at ``time_ns``; return what opened, changed or resolved."""
        updates = []
        now = {finding.id: finding for finding in evaluate(facts, time_ns, self._rules)}
        for identity, finding in now.items():
            before = self._open.get(identity)
            if before is None:
                self._open[identity] = finding
                updates.append(FindingUpdate(FindingChange.OPENED, finding))
                continue
            self._open[identity] = replace(finding, first_observed_ns=before.first_observed_ns)
            if finding.severity is not before.severity or identity in self._unreported:
                updates.append(FindingUpdate(FindingChange.CHANGED, self._open[identity]))
        for identity in self._open.keys() - now.keys():
            resolved = replace(
                self._open.pop(identity), state=State.RESOLVED, resolution=Resolution.ENDED,
                last_observed_ns=time_ns, resolved_ns=time_ns,
            )  # fmt: skip
            updates.append(FindingUpdate(FindingChange.RESOLVED, resolved))
        self._unreported.clear()
        return updates
