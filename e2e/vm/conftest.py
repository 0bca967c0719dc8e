"""A cluster with one node that has a kernel of its own, beside those that share this machine's."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from cluster import handle, machine
from cluster.handle import Cluster
from support.cluster_release import Release

VM = "vm1"
_EMULATED_MILLICORES = 500


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """The one that is up, with a virtual machine added where it has none; else one of its own."""
    if os.environ.get("REVEAL_NODES") == "none":
        pytest.skip("no real nodes are wanted (REVEAL_NODES=none)")
    if why := machine.missing(vms=1):
        pytest.fail(why)
    with handle.running(1, vms=1) as found:
        yield found


@pytest.fixture(scope="session")
def vm(cluster: Cluster) -> str:
    """The name of the node."""
    assert VM in cluster.vms
    return VM


@pytest.fixture(scope="session")
def watched(release: Release, vm: str) -> Iterator[Release]:
    """The virtual machine and one node of the machine itself."""
    _budget(release, _EMULATED_MILLICORES)
    release.watch(release.cluster.nodes[0], vm)
    yield release
    _budget(release, None)
    release.watch(*release.cluster.nodes)


def _budget(release: Release, millicores: int | None) -> None:
    """Of each collector: where a machine is emulated all takes ten times as long."""
    body = {"spec": {"collector": {"cpuBudgetMillicores": millicores}}}
    release.kube.patch(release.profile, body)
