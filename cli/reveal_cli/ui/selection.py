"""Which findings a page lists: the fields of its form, and what they select."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from reveal_cli.ui.source import ListedFinding
from reveal_contract.finding import Severity, State

_MOST_CHARACTERS = 200  # of a field


@dataclass(frozen=True)
class Selection:
    """The fields of the form; an empty one selects all."""

    severity: str = ""  # the least
    state: str = ""
    subsystem: str = ""
    node: str = ""
    job: str = ""
    text: str = ""  # in claim, cause, node, job, or any subject

    @classmethod
    def of(cls, query: Mapping[str, Sequence[str]]) -> Selection:
        """Return the selection of a query string; unknown values select nothing less."""
        given = {each.name: query.get(each.name, [""])[0] for each in fields(cls)}
        return cls(**{name: value.strip()[:_MOST_CHARACTERS] for name, value in given.items()})

    def apply(self, findings: Sequence[ListedFinding]) -> list[ListedFinding]:
        """Return the selected findings, in the same order."""
        return [each for each in findings if self._selects(each)]

    def _selects(self, listed: ListedFinding) -> bool:
        finding = listed.finding
        severities = {severity.value: severity.rank for severity in Severity}
        return (
            finding.severity.rank >= severities.get(self.severity, 0)
            and (self.state not in set(State) or finding.state == self.state)
            and self.subsystem in ("", finding.subsystem.value)
            and self.node in ("", finding.node_name)
            and self.job in ("", listed.job)
            and self.text.casefold() in _searched(listed)
        )


def _searched(listed: ListedFinding) -> str:
    finding = listed.finding
    cause = finding.hypothesis.name if finding.hypothesis else ""
    names = [f"{pod.namespace}/{pod.name}" for pod in finding.pods]
    names += [subject.name for subject in finding.subjects] + list(finding.victims)
    parts = (finding.claim, cause, finding.node_name, listed.job, listed.origin, *names)
    return "\n".join(parts).casefold()
