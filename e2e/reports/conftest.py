"""What the end-to-end tests of reports share: a job to disturb, and who watches it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.plane import ControlPlane
from reveal_cli.faults import sweep
from reveal_cli.workloads import Workload
from support.api_server import Kube
from support.report_pipeline import ReportPipeline, pipeline_of


@pytest.fixture
def watching(
    control_plane: ControlPlane, kube: Kube, redis_server: Path, tmp_path: Path
) -> Iterator[ReportPipeline]:
    """A collector runs; analyzers are the test's."""
    pipeline = pipeline_of(control_plane, kube, redis_server, tmp_path)
    with pipeline.collecting():
        yield pipeline


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Workload]:
    sweep()
    with Workload("train", tmp_path) as running_job:
        yield running_job
