"""The findings of a running scan or a replay, and what is suspected right now."""

from __future__ import annotations

from collections.abc import Iterable

from reveal_contract.finding import Finding, FindingChange, FindingUpdate

_SUSPECTED_SECONDS = 5


class FindingLog:
    """The latest state of each finding, and the suspicions of the last seconds."""

    def __init__(self) -> None:
        self._findings: dict[str, Finding] = {}
        self._suspected: list[tuple[int, Finding]] = []
        self._second = 0

    @property
    def findings(self) -> list[Finding]:
        """Return the findings in the order of their onset."""
        return by_onset(self._findings.values())

    @property
    def suspected(self) -> list[Finding]:
        return [finding for _, finding in self._suspected]

    def update(self, updates: Iterable[FindingUpdate]) -> list[Finding]:
        """Apply the updates of one second and return the findings that they opened.

        A suspicion stays until a finding opens or five seconds have passed.
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


def by_onset(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings in the order of their onset."""
    return sorted(findings, key=lambda finding: (finding.first_observed_ns, finding.id))
