"""The report of a fault that lasts on real nodes: looked at again and again until its end."""

from __future__ import annotations

import logging
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from cluster.handle import Cluster
from reveal_contract.kube.node_condition import CONDITION_TYPE
from support.api_server import Object, wait_for
from support.cluster_release import Release, cause, summary
from support.fault_run import wrong
from support.faulty_pods import Expected

log = logging.getLogger(__name__)

LOOK_S = 15.0
_VISIBLE_S = 60.0
_ENDS_S = 60.0
_EVENTS_S = 15.0
# Events of a report that is open, but for those of its severity
_OPEN, _CONTINUES, _ENDED = "AnomalyDetected", "AnomalyContinues", "AnomalyResolved"
_SEVERITY = "AnomalyEscalated"


@dataclass(frozen=True)
class LastingReport:
    """The report of a fault: its first one that was as expected."""

    watched: Release
    expected: Expected
    since: str
    name: str

    def follow(self, seconds: float) -> None:
        """Look at it for so long; each time it is open and as expected, and the only one."""
        ends = time.monotonic() + seconds
        self.check_open()
        while (left := ends - time.monotonic()) > 0:
            time.sleep(min(left, LOOK_S))
            self.check_open()

    def check_open(self) -> None:
        report = self._look()
        assert report["status"]["state"] == "Open", self._described(report)
        assert not wrong(report, self.expected), self._described(report)
        assert set(self.reasons) <= {_OPEN, _CONTINUES}, self.reasons
        self._check_single()

    def check_resolved(self) -> None:
        """Its end is reported in time: the fault is over by now."""
        began = time.monotonic()
        wait_for(lambda: self._status["state"] == "Resolved", _ENDS_S, f"{self.name} is resolved")
        log.info("%s was resolved after %.0f s", self.name, time.monotonic() - began)
        wait_for(lambda: _ENDED in self.reasons, _EVENTS_S, f"an Event {_ENDED}")
        report = self._look()
        assert report["status"]["resolution"] == "Ended", self._described(report)
        assert not wrong(report, self.expected), self._described(report)
        assert self.reasons.count(_ENDED) == 1, self.reasons
        self._check_single()

    @property
    def reasons(self) -> list[str]:
        """Reasons of its Events on the node, without those of a severity that rose."""
        return [each for each in self.watched.events(self.name) if each != _SEVERITY]

    @property
    def pods(self) -> set[str]:
        """The pods with an Event of it."""
        return self.watched.pods_with_events(self.name)

    @property
    def _status(self) -> Object:
        status: Object = self.watched.report(self.name)["status"]
        return status

    def _check_single(self) -> None:
        """Nobody reported the same again, and it began only once."""
        found = [
            report for report in self.watched.reports(self.since)
            if cause(report) == self.expected.hypothesis
            and report["spec"]["nodeName"] == self.expected.node
        ]  # fmt: skip
        names = [report["metadata"]["name"] for report in found]
        assert names == [self.name], [summary(report) for report in found]
        assert self.reasons.count(_OPEN) == 1, self.reasons

    def _look(self) -> Object:
        report = self.watched.report(self.name)
        log.info("%s", self._described(report))
        return report

    def _described(self, report: Object) -> str:
        status = report["status"]
        state = f"{status['state']} {status.get('resolution', '')} {status['severity']}"
        return f"{self.name} {state}: {summary(report)}; Events {self.reasons} and on {self.pods}"


def reported(watched: Release, expected: Expected, since: str) -> LastingReport:
    """Return the report of a fault that began after ``since``, once it is as expected.

    Its Event is there by then: analyzers write it after the report.
    """

    def right() -> str:
        names = [
            report["metadata"]["name"]
            for report in watched.reports(since)
            if not wrong(report, expected)
        ]
        assert names, f"since {since} none of {[_dated(each) for each in watched.reports()]}"
        return str(names[0])

    name = wait_for(right, _VISIBLE_S, f"a report as {expected}")
    wait_for(lambda: _OPEN in watched.events(name), _EVENTS_S, f"an Event {_OPEN} of {name}")
    return LastingReport(watched, expected, since, name)


def _dated(report: Object) -> str:
    return f"{report['spec']['firstSeenTime']} {summary(report)}"


@contextmanager
def condition_watch(cluster: Cluster, node: str, file: Path) -> Iterator[Callable[[], list[str]]]:
    """Follow the condition ``RevealAnomaly`` of a node with ``kubectl get --watch``.

    The function returns each of its states: reason and time, or "" where the node has none.
    """
    condition = f'.status.conditions[?(@.type=="{CONDITION_TYPE}")]'
    path = f'{{{condition}.reason}} {{{condition}.lastTransitionTime}}{{"\\n"}}'
    command = [
        str(cluster.program("kubectl")), "--kubeconfig", str(cluster.kubeconfig),
        "get", "node", node, "--watch", "-o", f"jsonpath={path}",
    ]  # fmt: skip

    def states() -> list[str]:
        lines = [line.strip() for line in file.read_text().splitlines()]
        return [state for state, _ in groupby(lines)]

    with file.open("w") as output, subprocess.Popen(command, stdout=output) as process:
        try:
            yield states
        finally:
            process.terminate()
