"""The only place that our pods write to is full: what is to be told is told, and nothing ends."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from clusterchaos import ANALYZER, COLLECTOR, Pods, restarts
from clusterfaults import Expected, throttled
from controlplane import Object
from faultstory import fault
from reveal_contract.kubernetes import RUN_FOLDER

pytestmark = pytest.mark.timeout(900)

NODE = "node2"
_AWAY_S = 15.0
_FILLER = f"{RUN_FOLDER}/filler"
_FILL = f"""
import errno
with open({_FILLER!r}, "wb", buffering=0) as file:
    try:
        while True:
            file.write(bytes(4096))
    except OSError as error:
        print(errno.errorcode[error.errno])
"""


def test_a_finding_is_told_while_all_run_folders_are_full(pods: Pods, jobs: str) -> None:
    [analyzer], [collector] = pods.of(ANALYZER), pods.of(COLLECTOR, NODE)
    expected = Expected(NODE, "CPU", "CPUQuotaThrottling", f"{jobs}/throttled")
    before = restarts(analyzer), restarts(collector)
    with (
        _full(pods, analyzer),
        _full(pods, collector),
        fault("run folders full", pods.watched, expected) as story,
        throttled(pods.watched, jobs, NODE),
    ):
        _away(pods)  # the report has to wait, and there is no room for what waits
        story.begins()
    [analyzer], [collector] = pods.of(ANALYZER), pods.of(COLLECTOR, NODE)
    assert (restarts(analyzer), restarts(collector)) == before


def _away(pods: Pods) -> None:
    pods.cluster.crash_api()
    try:
        time.sleep(_AWAY_S)
    finally:
        pods.cluster.resume_api()


@contextmanager
def _full(pods: Pods, pod: Object) -> Iterator[None]:
    assert pods.execute(pod, "python3", "-c", _FILL).strip() == "ENOSPC"
    try:
        yield
    finally:
        pods.execute(pod, "python3", "-c", f"import os; os.remove({_FILLER!r})")
