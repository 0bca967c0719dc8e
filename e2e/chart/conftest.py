"""A control plane for releases alone: they own definitions that other tests apply by hand."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cluster import plane
from cluster.plane import Options
from support.chart_releases import Cluster
from support.helm_chart import program


@pytest.fixture(scope="session")
def releases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The control plane of these tests, and Helm as its administrator."""
    with plane.running(Options()) as running:
        yield Cluster(running, program(), tmp_path_factory.mktemp("helm"))


@pytest.fixture
def fresh(releases: Cluster) -> Iterator[Cluster]:
    """The same with nothing of Reveal in it, before and after."""
    releases.wipe()
    yield releases
    releases.wipe()
