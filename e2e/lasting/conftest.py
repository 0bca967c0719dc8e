"""What faults that last share, beside the release on real nodes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.cluster_outages import Pods, recovered
from support.cluster_release import Release, evaluation, install


@pytest.fixture(scope="module")
def two_analyzers(
    three_nodes: Release, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Release]:
    """Two replicas, which may set conditions on nodes and do."""
    cluster, folder = three_nodes.cluster, tmp_path_factory.mktemp("helm")
    install(cluster, folder, {**evaluation(cluster), "nodeConditions.allowed": "true"})
    three_nodes.change(analyzer={"replicas": 2}, reporting={"nodeConditions": True})
    yield three_nodes
    three_nodes.change(analyzer=None, reporting=None)
    install(cluster, folder)


@pytest.fixture(scope="module")
def single_analyzer(three_nodes: Release) -> Iterator[Pods]:
    """The pods of a release as it is by default."""
    recovered(three_nodes)
    yield Pods(three_nodes)
    three_nodes.change(analyzer=None, reporting=None)
    recovered(three_nodes)
