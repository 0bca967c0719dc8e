"""Configuration findings of a node over time: opened, changed, resolved."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from reveal_analyzer.configuration.evaluate import RULES, evaluate_all
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
        """Evaluate the facts at ``time_ns``; return what opened, changed or resolved.

        A finding whose facts are unknown now stays as it is.
        """
        evaluation = evaluate_all(facts, time_ns, self._rules)
        unknown = {each.id for each in self._open.values() if evaluation.is_unknown(each)}
        current = {finding.id for finding in evaluation.findings}
        updates = [
            *self._report_again(unknown & self._unreported),
            *self._take(each for each in evaluation.findings if each.id not in unknown),
            *self._resolve(self._open.keys() - current - unknown, time_ns),
        ]
        self._unreported.clear()
        return updates

    def _report_again(self, identities: Iterable[str]) -> Iterator[FindingUpdate]:
        for identity in sorted(identities):
            yield FindingUpdate(FindingChange.CHANGED, self._open[identity])

    def _take(self, findings: Iterable[Finding]) -> Iterator[FindingUpdate]:
        """Open new findings, and update the severity, claim and evidence of open ones."""
        for finding in findings:
            before = self._open.get(finding.id)
            if before is None:
                self._open[finding.id] = finding
                yield FindingUpdate(FindingChange.OPENED, finding)
                continue
            now = replace(finding, first_observed_ns=before.first_observed_ns)
            self._open[finding.id] = now
            same = replace(before, last_observed_ns=now.last_observed_ns) == now
            if not same or finding.id in self._unreported:
                yield FindingUpdate(FindingChange.CHANGED, now)

    def _resolve(self, identities: Iterable[str], time_ns: int) -> Iterator[FindingUpdate]:
        for identity in sorted(identities):
            resolved = replace(
                self._open.pop(identity), state=State.RESOLVED, resolution=Resolution.ENDED,
                last_observed_ns=time_ns, resolved_ns=time_ns,
            )  # fmt: skip
            yield FindingUpdate(FindingChange.RESOLVED, resolved)
