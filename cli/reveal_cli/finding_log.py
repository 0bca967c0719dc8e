"""The findings of a running scan or a replay, and what is suspected right now."""

from __future__ import annotations

from collections.abc import Iterable

from reveal_contract.finding import Finding, FindingChange, FindingUpdate

_SUSPECTED_SECONDS = 5


class FindingLog:
    """The latest state of every finding, and what is suspected right now."""

    def __init__(self) -> None:
        self._findings: dict[str, Finding] = {}
        self._suspected: list[tuple[int, Finding]] = []
        self._second = 0

    @property
    def findings(self) -> list[Finding]:
        """In the order of their onset."""
        return in_order(self._findings.values())

    @property
    def suspected(self) -> list[Finding]:
        return [finding for _, finding in self._suspected]

    def take(self, updates: Iterable[FindingUpdate]) -> list[Finding]:
        """Note the updates of one second; the findings that were opened by them.

        A suspicion is said once: it is shown until it becomes a finding or has grown old.
        """
        self._second += 1
        opened = []
        for update in updates:
            if update.change is FindingChange.SUSPECTED:
                self._suspected.append((self._second, update.finding))
                continue
            if update.change is FindingChange.OPENED:
                opened.append(update.finding)
            self._findings[update.finding.id] = update.finding
        self._suspected = [
            (since, finding)
            for since, finding in self._suspected
            if self._second - since < _SUSPECTED_SECONDS and not opened
        ]
        return opened


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda finding: (finding.first_seen_ns, finding.id))
