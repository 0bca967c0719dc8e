"""The Kubernetes sink's ledger with a clock, whose reports are delivered when they are due."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from reveal_analyzer.sinks.kube.entry import Said
from reveal_analyzer.sinks.kube.report_store import Ledger, Listed
from reveal_analyzer.telemetry.snapshot import Situation, Watched
from reveal_contract.finding import FindingUpdate, Severity
from reveal_contract.kube.anomaly_report import Report
from reveal_contract.names import SHARDS
from reveal_contract.settings import AnalyzerSettings
from support.finding_factory import AT, SECOND, opened

ALL = frozenset(range(SHARDS))


class Desk:
    """A ledger with a clock, whose reports are delivered when they are due."""

    def __init__(self, known: bool = True, **settings: Any) -> None:
        self.ledger = Ledger(AnalyzerSettings(profile="p", publish="kubernetes", **settings))
        self.now = 1000.0
        self.written: list[Report] = []
        self.said: list[str] = []
        if known:
            self.list()

    @property
    def now_ns(self) -> int:
        return AT + int(self.now * SECOND)

    def list(self, *found: Report) -> None:
        whole = [Listed(one, one.labels(), True) for one in found]
        self.ledger.listed(whole, self.now)

    def tell(self, *updates: FindingUpdate) -> None:
        for update in updates:
            self.ledger.change(update, self.now)

    def situation(self, nodes: Iterable[str] = ("n1",), **other: Any) -> Situation:
        watched = {name: Watched(self.now, 0.0) for name in nodes}
        given: dict[str, Any] = {"connected": True, "shards": ALL, "nodes": watched, **other}
        return Situation(at_s=self.now, **given)

    def follow(self, situation: Situation | None = None) -> None:
        self.ledger.follow(situation or self.situation(), self.now_ns)

    def turn(self) -> list[Report]:
        """What was written in this turn."""
        self.ledger.admit(self.now, self.now_ns)
        due = self.ledger.due(self.now, self.now_ns)
        for entry in due:
            self.said += [one.reason.name for one in entry.events if isinstance(one, Said)]
            entry.events.clear()
            self.ledger.delivered(entry, entry.report, self.now)
        made = [entry.report for entry in due]
        self.written += made
        return made

    def run(self, seconds: int, step: int = 5, **situation: Any) -> None:
        for _ in range(0, seconds, step):
            self.now += step
            self.follow(self.situation(**situation))
            self.turn()

    def states(self) -> list[tuple[str, str]]:
        return [(one.name, one.status["state"]) for one in self.written]


def flood(desk: Desk, number: int, severity: Severity = Severity.LOW) -> None:
    desk.tell(
        *(opened(f"cpu-{n}", node_name=f"n{n % 9}", severity=severity) for n in range(number))
    )
