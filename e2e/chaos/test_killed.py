"""kill -9 of each part while a pod is held back by its quota: one report, one Event, its end.

``onset``: it dies when the fault has just begun and is not reported yet; ``open``: the finding is
known, and has to be gone on with.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from support.cluster_outages import ANALYZER, COLLECTOR, OPERATOR, REDIS, Pods
from support.fault_run import throttled_run
from support.helm_chart import NAMESPACE

pytestmark = pytest.mark.timeout(900)

NODE = "node2"
_AWAY_S = 15.0
_GOES_ON_S = 10.0
PODS = (COLLECTOR, ANALYZER, OPERATOR, REDIS)  # Redis comes back empty: it keeps nothing on disk


@pytest.mark.parametrize("moment", ["onset", "open"])
@pytest.mark.parametrize("component", PODS)
def test_a_pod_is_killed(pods: Pods, jobs: str, component: str, moment: str) -> None:
    node = NODE if component == COLLECTOR else ""
    about = f"{component} killed, {moment}"
    restarted = f"{NAMESPACE}/reveal-{component}"
    _expect_single_report(pods, jobs, about, moment, lambda: pods.kill(component, node), restarted)


@pytest.mark.parametrize("moment", ["onset", "open"])
def test_the_api_server_is_killed(pods: Pods, jobs: str, moment: str) -> None:
    about = f"API server killed, {moment}"
    _expect_single_report(pods, jobs, about, moment, lambda: pods.without_api(_AWAY_S))


def test_the_kubelet_is_killed(pods: Pods, jobs: str) -> None:
    def kill() -> None:
        pods.cluster.execute(NODE, "pkill", "-KILL", "-x", "kubelet")

    _expect_single_report(pods, jobs, "kubelet killed", "open", kill)


def _expect_single_report(
    pods: Pods,
    jobs: str,
    about: str,
    moment: str,
    breaks: Callable[[], None],
    restarted: str = "",
) -> None:
    """What ``fault`` asserts at its end: one report, each Event once, resolved.

    What a killed part reads from a cold disk when it starts again is reported rightly, too.
    """
    with throttled_run(about, pods.watched, jobs, NODE, restarted) as story:
        if moment == "onset":
            breaks()
        story.start()
        if moment == "open":
            breaks()
            time.sleep(_GOES_ON_S)
