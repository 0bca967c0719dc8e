"""End-to-end tests run; what they need of Kubernetes is built first, not skipped."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster import building, handle, machine, plane
from cluster.daemons import StartError
from cluster.handle import Cluster
from cluster.plane import ControlPlane, Options
from images.store import BuildError
from support import property_tests
from support.api_server import kube, launch_control_plane, namespace
from support.cluster_release import Release, install
from support.faulty_pods import namespace_of_jobs
from support.redis_server import redis_launcher, redis_server

__all__ = ["kube", "launch_control_plane", "namespace", "redis_launcher", "redis_server"]

property_tests.use_as_default()


# longer than anything here waits: a test that waits in vain has to say what for
_LIMIT_S = 240


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give tests without a time limit of their own one that suits a real API server."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(_LIMIT_S))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build before the first test: no test's time limit has to hold minutes of compiling."""
    if session.items and not session.config.option.collectonly:
        try:
            building.build()
            vms = int(_want(session, "vm"))
            needed = os.environ.get("REVEAL_NODES") != "none" and _want(session, "cluster")
            if needed and not machine.missing(vms):
                handle.prepare_unless_up(vms)
        except (building.BuildError, BuildError, StartError) as error:
            pytest.exit(f"no end-to-end tests: {error}", returncode=1)


def _want(session: pytest.Session, fixture: str) -> bool:
    return any(fixture in getattr(item, "fixturenames", ()) for item in session.items)


@pytest.fixture(scope="session")
def control_plane() -> Iterator[ControlPlane]:
    """A whole control plane for all tests of the session, controllers and audit log too."""
    with plane.running(Options(audit=True)) as running:
        yield running


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Three nodes: those of ``make cluster`` where it is up, else of this session alone."""
    if os.environ.get("REVEAL_NODES") == "none":
        pytest.skip("no real nodes are wanted (REVEAL_NODES=none)")
    if why := machine.missing():
        # `make e2e` is to tell when half of it cannot be had
        (pytest.fail if os.environ.get("REVEAL_NODES") == "required" else pytest.skip)(why)
    with handle.running(3) as found:
        yield found


@pytest.fixture(scope="session")
def release(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Release:
    """Helm's, on the cluster as it is; it stays for as long as the cluster does."""
    return install(cluster, tmp_path_factory.mktemp("helm"))


@pytest.fixture(scope="session")
def three_nodes(release: Release) -> Release:
    """All nodes are watched: for faults that cgroups tell."""
    release.watch(*release.cluster.nodes)
    return release


@pytest.fixture(scope="module")
def single_node(release: Release) -> Iterator[Release]:
    """``node1`` alone is: what the kernel counts for the machine would be every node's."""
    release.watch("node1")
    yield release
    release.watch(*release.cluster.nodes)


@pytest.fixture
def jobs(release: Release) -> Iterator[str]:
    """A namespace of its own."""
    with namespace_of_jobs(release) as name:
        yield name
