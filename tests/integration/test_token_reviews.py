"""Tokens of pods, as a real API server signs and reviews them."""

from __future__ import annotations

import time

from cluster.plane import ControlPlane
from reveal_analyzer.sinks.kube.api import connect
from reveal_analyzer.sinks.kube.token_reviews import TokenReviews
from reveal_analyzer.stream.origin import TokenOwner
from reveal_contract.kube import names
from support.api_server import Kube, unique
from support.pod_tokens import ACCOUNT, pod_token

PROFILE, NODE = "gpu-nodes", "n1"


def test_the_api_server_knows_the_node_of_a_token(control_plane: ControlPlane, kube: Kube) -> None:
    """Of a pod of the DaemonSet in the namespace of the analyzer, and with its audience."""
    namespace = unique("reveal")
    kube.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    account = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": ACCOUNT},
    }
    kube.create(account, namespace=namespace)
    reviews = TokenReviews(connect(control_plane.kubeconfig), PROFILE, namespace)
    collector = names.child_name(names.COLLECTOR, PROFILE)

    def owner(token: str) -> TokenOwner:
        reviews.owner(NODE, token.encode())
        reviews.step(time.monotonic())
        return reviews.owner(NODE, token.encode())

    token = pod_token(kube, namespace, f"{collector}-x7k2p", NODE)
    assert owner(token) is TokenOwner.NODE
    assert owner(pod_token(kube, namespace, f"{collector}-a", "other")) is TokenOwner.FOREIGN
    assert owner(pod_token(kube, namespace, "b", NODE)) is TokenOwner.FOREIGN
    assert owner(pod_token(kube, namespace, "c", NODE, audience="")) is TokenOwner.NOBODY
    assert owner(f"{token[:-4]}AAAA") is TokenOwner.NOBODY
