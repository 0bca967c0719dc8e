"""Analyzers are changed, killed and scaled while packets are lost: the report goes on.

No signature finds this fault without what was learned before it: an analyzer that learns the node
during the fault takes the loss for normal.  The tests run in the order of this file: all of them
are about the same fault.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from support.api_server import wait_for
from support.cluster_outages import ANALYZER, COLLECTOR, Pods, restarts
from support.cluster_release import now
from support.faulty_pods import namespace_of_jobs
from support.lasting_fault import LastingReport, reported
from support.packet_loss import loss, packet_loss, ranks

pytestmark = pytest.mark.timeout(1200)

NODE, OTHER = "node2", "node1"
_STARTED_S = 25.0
_PER_MILLE = 10
# what nobody detects any more is resolved a minute after its node was learned, in a minute
_GOES_ON_S = 150.0
_BACK_S = 120.0
# the collector of a node sees all of its processes
_KILL = """
import os, pathlib
for name in pathlib.Path("/proc").glob("[0-9]*/comm"):
    if name.read_text().strip() == "reveal-analyzer":
        os.kill(int(name.parent.name), 9)
"""


def _kill(pods: Pods) -> None:
    [analyzer] = pods.of(ANALYZER)
    [collector] = pods.of(COLLECTOR, analyzer["spec"]["nodeName"])
    before = restarts(analyzer)
    pods.execute(collector, "python3", "-c", _KILL)
    wait_for(lambda: restarts(pods.of(ANALYZER)[0]) > before, _BACK_S, "the analyzer is back")


CHANGES: dict[str, Callable[[Pods], None]] = {
    "settings": lambda pods: pods.watched.change(
        analyzer={"sensitivity": "Medium"}, reporting={"minSeverity": "Medium"}
    ),
    "killed": _kill,
    "two replicas": lambda pods: pods.watched.change(analyzer={"replicas": 2}),
    "one replica": lambda pods: pods.watched.change(analyzer={"replicas": 1}),
}


@dataclass(frozen=True)
class OpenLoss:
    """The fault that lasts."""

    report: LastingReport
    end: Callable[[], None]


@pytest.fixture(scope="module")
def open_loss(single_analyzer: Pods) -> Iterator[OpenLoss]:
    watched = single_analyzer.watched
    with (
        namespace_of_jobs(watched) as jobs,
        ranks(watched, jobs, (OTHER, NODE)),
        ExitStack() as fault,
    ):
        time.sleep(_STARTED_S)
        since = now()
        fault.enter_context(loss(watched.cluster, NODE, _PER_MILLE))
        yield OpenLoss(reported(watched, packet_loss(NODE, jobs), since), fault.close)


@pytest.mark.parametrize("change", CHANGES)
def test_a_report_outlives_its_analyzer(
    single_analyzer: Pods, open_loss: OpenLoss, change: str
) -> None:
    open_loss.report.check_open()
    CHANGES[change](single_analyzer)
    open_loss.report.follow(_GOES_ON_S)


def test_its_end_is_reported_once(open_loss: OpenLoss) -> None:
    open_loss.end()
    open_loss.report.check_resolved()
