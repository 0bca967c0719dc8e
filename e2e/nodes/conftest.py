"""What the tests of the cluster itself run on it."""

from __future__ import annotations

import string
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.handle import Cluster
from support.api_server import Kube, parsed, unique, wait_for
from support.node_network import NodeNetwork

_ROLLED_OUT_S = 90


@pytest.fixture(scope="session")
def stage(cluster: Cluster) -> Iterator[NodeNetwork]:
    kube = Kube(cluster.kubeconfig)
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": unique("smoke")}}
    name = kube.create(body)["metadata"]["name"]
    text = string.Template((Path(__file__).parent / "smoke.yaml").read_text())
    manifest = text.substitute(image=cluster.image("reveal-workload"), namespace=name)
    wait_for(lambda: kube.get("v1", "ServiceAccount", "default", name), 30, "an account")
    kube.apply(parsed(manifest), namespace=name)
    for item in ("deployment/web", "daemonset/agent"):
        cluster.kubectl("-n", name, "rollout", "status", item, f"--timeout={_ROLLED_OUT_S}s")
    yield NodeNetwork(cluster, kube, name)
    kube.delete(body)
