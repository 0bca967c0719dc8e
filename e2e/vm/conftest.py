"""A cluster with one node that has a kernel of its own, beside those that share this machine's."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from cluster import handle, machine
from cluster.handle import Cluster
from clusterwatch import Watched

VM = "vm1"


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """The one that is up, with a virtual machine added where it has none; else one of its own."""
    if os.environ.get("REVEAL_NODES") == "none":
        pytest.skip("no real nodes are wanted (REVEAL_NODES=none)")
    if why := machine.lacking(vms=1):
        pytest.fail(why)
    with handle.running(1, vms=1) as found:
        yield found


@pytest.fixture(scope="session")
def vm(cluster: Cluster) -> str:
    """The name of the node."""
    assert VM in cluster.vms
    return VM


@pytest.fixture(scope="session")
def watched(release: Watched, vm: str) -> Watched:
    """The virtual machine and one node of the machine itself."""
    release.watch(release.cluster.nodes[0], vm)
    return release
