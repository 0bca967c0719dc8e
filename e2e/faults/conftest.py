"""A release on real nodes that all tests of faults share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cluster.handle import Cluster
from clusterfaults import namespace_of_jobs
from clusterwatch import Watched, install


@pytest.fixture(scope="session")
def release(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Watched:
    """Helm's, on the cluster as it is; it stays for as long as the cluster does."""
    return install(cluster, tmp_path_factory.mktemp("helm"))


@pytest.fixture(scope="session")
def three_nodes(release: Watched) -> Watched:
    """All nodes are watched: for faults that cgroups tell."""
    release.watch(*release.cluster.nodes)
    return release


@pytest.fixture
def one_node(release: Watched) -> Iterator[Watched]:
    """``node1`` alone is: what the kernel counts for the machine would be every node's."""
    release.watch("node1")
    yield release
    release.watch(*release.cluster.nodes)


@pytest.fixture
def jobs(release: Watched) -> Iterator[str]:
    """A namespace of its own."""
    with namespace_of_jobs(release) as name:
        yield name
