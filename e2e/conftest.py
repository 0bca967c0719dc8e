"""End-to-end tests run; what they need of Kubernetes is built first, not skipped."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import exploring
from cluster import building, plane
from cluster.plane import ControlPlane, Options
from controlplane import kube, launch_control_plane, namespace
from redisserver import redis_launcher, redis_server

__all__ = ["kube", "launch_control_plane", "namespace", "redis_launcher", "redis_server"]

exploring.use_as_default()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build before the first test: no test's time limit has to hold minutes of compiling."""
    if session.items and not session.config.option.collectonly:
        try:
            building.build()
        except building.BuildError as error:
            pytest.exit(f"no end-to-end tests: {error}", returncode=1)


@pytest.fixture(scope="session")
def control_plane() -> Iterator[ControlPlane]:
    """A whole control plane for all tests of the session, controllers and audit log too."""
    with plane.running(Options(audit=True)) as running:
        yield running
