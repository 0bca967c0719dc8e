"""The analyzer that reported a finding is lost: another continues within ten seconds."""

from __future__ import annotations

import time

import pytest

from support.api_server import wait_for
from support.cluster_outages import ANALYZER, Pods, replicas
from support.fault_run import throttled_run

pytestmark = pytest.mark.timeout(900)

NODE = "node2"
TAKES_OVER_S = 10.0
_UNFOLLOWED_S = 180.0  # reports that were open at the handover and are not observed again


def test_the_other_analyzer_takes_over(pods: Pods, jobs: str) -> None:
    with replicas(pods.watched, 2):
        pods.watched.watch(
            *pods.cluster.nodes
        )  # nodes that changed their analyzer are learned again
        pods.watched.calm(_UNFOLLOWED_S)
        with throttled_run("analyzer lost", pods.watched, jobs, NODE) as story:
            story.start()
            _lose_owner(pods)


def _lose_owner(pods: Pods) -> None:
    name = pods.owner(NODE)
    pods.remove(next(item for item in pods.of(ANALYZER) if item["metadata"]["name"] == name))
    lost = time.monotonic()
    wait_for(lambda: pods.owner(NODE) not in ("", name), 60, "another one reads of the node")
    seconds = time.monotonic() - lost
    print(f"\ntaken over {seconds:.1f} s after the loss by {pods.owner(NODE)}")
    assert seconds <= TAKES_OVER_S
