"""A fault on real nodes from its start to its resolved report; each run is a row.

Rows are appended to the file that ``REVEAL_FAULT_ROWS`` names; ``bench/cluster_faults.py`` makes
a table of them.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from support.api_server import Object
from support.cluster_release import Release, cause, now, summary
from support.faulty_pods import Expected, quota, throttled
from support.polling import becomes_true

log = logging.getLogger(__name__)
_VISIBLE_S = 60.0
_LOOK_S = 0.2  # between two looks: who looks all the time is a noisy neighbour, too
_LASTS_S = 10.0
_ENDS_S = 120.0
_EVENTS_S = 10.0
_ROWS = "REVEAL_FAULT_ROWS"


@dataclass(frozen=True)
class Row:
    """What was reported of one fault: a row of the table."""

    fault: str
    watched: int
    found: bool
    node: bool
    subsystem: bool
    pod: bool
    hypothesis: bool
    reports: int
    events: int
    seconds: float | None
    resolved_s: float | None
    summaries: tuple[str, ...]

    @property
    def wrong(self) -> list[str]:
        """The columns that are not as they are to be."""
        columns = ("found", "node", "subsystem", "pod", "hypothesis")
        found = [name for name in columns if not getattr(self, name)]
        found += [name for name in ("reports", "events") if getattr(self, name) != 1]
        return found + [name for name in ("seconds", "resolved_s") if getattr(self, name) is None]

    def save(self) -> None:
        _save(asdict(self))


@dataclass
class FaultRun:
    """A fault that may have begun."""

    watched: Release
    expected: Expected
    since: str
    seconds: float | None = None
    report: str = ""  # the name of the first right one

    def start(self) -> None:
        """Now: wait for what `kubectl get` is to show, and let the fault last a while."""
        began = time.time()
        self._follow(lambda: began)

    def start_in(self, namespace: str, pod: str) -> None:
        """The same, where the first line of a pod's log tells when it began."""
        self._follow(lambda: _start_in_log(self.watched, namespace, pod))

    def _follow(self, began: Callable[[], float]) -> None:
        if not _becomes_true(self.reports, _VISIBLE_S):
            return
        first = time.time()
        if _becomes_true(self._right, _VISIBLE_S):
            self.seconds = round(time.time() - began(), 1)
        log.info("%.1f s to the first of its reports, %s to the right one", first - began(),
                 self.seconds)  # fmt: skip
        time.sleep(_LASTS_S)

    def reports(self) -> list[Object]:
        time.sleep(_LOOK_S)
        found = self.watched.reports(self.since)
        return [item for item in found if not self.expected.is_beside(cause(item), _named(item))]

    def _right(self) -> str:
        names = (
            report["metadata"]["name"]
            for report in self.reports()
            if not wrong(report, self.expected)
        )
        self.report = next(names, "")
        return self.report

    def resolved(self) -> bool:
        return all(report["status"].get("state") == "Resolved" for report in self.reports())


def _becomes_true(holds: Callable[[], object], seconds: float) -> bool:
    """Whether it is seen in time; nothing is while the API server is away."""

    def asked() -> object:
        try:
            return holds()
        except OSError:
            return False

    return becomes_true(asked, seconds)


@contextmanager
def fault_run(about: str, watched: Release, expected: Expected) -> Iterator[FaultRun]:
    """Run a fault inside; afterwards expect a single resolved report and its Events."""
    watched.calm()
    story = FaultRun(watched, expected, now())
    yield story
    ended = time.monotonic()
    over = _becomes_true(story.resolved, _ENDS_S)
    resolved_s = round(time.monotonic() - ended, 1) if over else None
    _becomes_true(lambda: len(_reasons(story)) >= 2 * len(story.reports()), _EVENTS_S)
    row = judged(about, story, resolved_s)
    row.save()
    listed = watched.cluster.kubectl("get", "anomalyreports", "-o", "wide")
    log.info("%s", row)
    for item in story.reports() if row.wrong else ():
        log.info("%s", json.dumps({**item["spec"], **item["status"]}))
    assert not row.wrong, (row.wrong, row, expected)
    (name,) = (report["metadata"]["name"] for report in story.reports())
    assert name in listed
    assert len(watched.events(name, "Pod")) <= 1


@contextmanager
def throttled_run(
    about: str, watched: Release, namespace: str, node: str, restarted: str = ""
) -> Iterator[FaultRun]:
    """The fault that every node can have: a pod wants a CPU, and its quota is a seventh of one.

    Pods whose names begin with ``restarted`` start again meanwhile.
    """
    expected = replace(quota(node, namespace), restarted=restarted)
    with fault_run(about, watched, expected) as story, throttled(watched, namespace, node):
        yield story


@contextmanager
def healthy_run(name: str, watched: Release) -> Iterator[None]:
    """Inside nothing is wrong, and nothing is found."""
    watched.calm()
    since, began = now(), time.time()
    yield
    findings = [summary(report) for report in watched.reports(since)]
    _save({"healthy": name, "seconds": round(time.time() - began), "findings": len(findings),
           "summaries": findings})  # fmt: skip
    assert findings == []


def judged(name: str, story: FaultRun, resolved_s: float | None) -> Row:
    """The story's row: of several reports, by the one that is right in most."""
    reports, expected = story.reports(), story.expected
    missed = min((wrong(report, expected) for report in reports), key=len, default=_ALL)
    reasons = _reasons(story)
    whole = reasons.count("AnomalyDetected") == reasons.count("AnomalyResolved")
    return Row(
        fault=name, watched=_desired(story.watched), found=bool(reports),
        node="node" not in missed, subsystem="subsystem" not in missed,
        pod="pod" not in missed, hypothesis="hypothesis" not in missed,
        reports=len(reports), events=reasons.count("AnomalyDetected") if whole else 0,
        seconds=story.seconds, resolved_s=resolved_s if reports else None,
        summaries=tuple(summary(report) for report in reports),
    )  # fmt: skip


_ALL = ("node", "subsystem", "pod", "hypothesis")


def wrong(report: Object, expected: Expected) -> tuple[str, ...]:
    """Which of node, subsystem, pod and hypothesis a report has not."""
    status = report.get("status", {})
    named = _named(report)
    if expected.victim:
        pod = not named and expected.pod in status.get("victims", ())
    else:
        pod = named[:1] == [name for name in (expected.pod,) if name]
    right = (
        report["spec"]["nodeName"] == expected.node,
        status.get("subsystem") == expected.subsystem,
        pod,
        cause(report) == expected.hypothesis,
    )
    return tuple(name for name, holds in zip(_ALL, right, strict=True) if not holds)


def _named(report: Object) -> list[str]:
    """The pods of a report, as ``namespace/name``."""
    pods = report.get("status", {}).get("pods", ())
    return [f"{pod['namespace']}/{pod['name']}" for pod in pods]


def _save(row: Object) -> None:
    if path := os.environ.get(_ROWS):
        with Path(path).open("a") as file:
            file.write(json.dumps(row) + "\n")


def _desired(watched: Release) -> int:
    """How many nodes are watched."""
    return int(watched.profile["status"].get("desiredNodes", 0))


def _start_in_log(watched: Release, namespace: str, pod: str) -> float:
    log_of_pod = watched.cluster.kubectl("-n", namespace, "logs", pod)
    return float(log_of_pod.splitlines()[0])


def _reasons(story: FaultRun) -> list[str]:
    """Events on nodes of all reports of a story."""
    return [
        reason
        for report in story.reports()
        for reason in story.watched.events(report["metadata"]["name"])
    ]
