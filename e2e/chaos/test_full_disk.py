"""The only folder that our pods write to is full: findings are reported and no pod ends.

The folders are in memory that the kernel cannot evict, so what fills them may be reported, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from reveal_contract.kube.names import RUN_FOLDER
from support.api_server import Object
from support.cluster_outages import ANALYZER, COLLECTOR, Pods, restarts
from support.fault_run import fault_run
from support.faulty_pods import quota, throttled

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


def test_a_finding_is_reported_while_all_run_folders_are_full(pods: Pods, jobs: str) -> None:
    [analyzer], [collector] = pods.of(ANALYZER), pods.of(COLLECTOR, NODE)
    before = restarts(analyzer), restarts(collector)
    expected = replace(quota(NODE, jobs), beside=("MemoryLocked",))
    with (
        _full(pods, analyzer),
        _full(pods, collector),
        fault_run("run folders full", pods.watched, expected) as story,
        throttled(pods.watched, jobs, NODE),
    ):
        pods.without_api(_AWAY_S)  # the report has to wait, and there is no room for what waits
        story.start()
    [analyzer], [collector] = pods.of(ANALYZER), pods.of(COLLECTOR, NODE)
    assert (restarts(analyzer), restarts(collector)) == before


@contextmanager
def _full(pods: Pods, pod: Object) -> Iterator[None]:
    assert pods.execute(pod, "python3", "-c", _FILL).strip() == "ENOSPC"
    try:
        yield
    finally:
        pods.execute(pod, "python3", "-c", f"import os; os.remove({_FILLER!r})")
