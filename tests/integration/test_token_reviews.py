"""Tokens of pods, as a real API server signs and reviews them."""

from __future__ import annotations

import time

from cluster.plane import ControlPlane
from reveal_analyzer.sinks.kube.api import connect
from reveal_analyzer.sinks.kube.token_reviews import TokenReviews
from reveal_analyzer.stream.origin import TokenOwner
from reveal_contract.kube import names
from reveal_contract.origin import AUDIENCE
from support.api_server import Kube, unique

PROFILE, NODE = "gpu-nodes", "n1"


def test_the_api_server_knows_the_node_of_a_token(control_plane: ControlPlane, kube: Kube) -> None:
    """Of a pod of the DaemonSet in the namespace of the analyzer, and with its audience."""
    namespace = unique("reveal")
    kube.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    account = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "reveal-collector"},
    }
    kube.create(account, namespace=namespace)
    reviews = TokenReviews(connect(control_plane.kubeconfig), PROFILE, namespace)
    collector = names.child_name(names.COLLECTOR, PROFILE)

    def owner(token: str) -> TokenOwner:
        reviews.owner(NODE, token.encode())
        reviews.step(time.monotonic())
        return reviews.owner(NODE, token.encode())

    token = _token(kube, namespace, f"{collector}-x7k2p", NODE)
    assert owner(token) is TokenOwner.NODE
    assert owner(_token(kube, namespace, f"{collector}-a", "other")) is TokenOwner.FOREIGN
    assert owner(_token(kube, namespace, "b", NODE)) is TokenOwner.FOREIGN
    assert owner(_token(kube, namespace, "c", NODE, audience="")) is TokenOwner.NOBODY
    assert owner(f"{token[:-4]}AAAA") is TokenOwner.NOBODY


def _token(kube: Kube, namespace: str, pod: str, node: str, audience: str = AUDIENCE) -> str:
    """A token of a new pod on a node, as the kubelet mounts it."""
    containers = [{"name": "collector", "image": "none"}]
    spec = {"nodeName": node, "serviceAccountName": "reveal-collector", "containers": containers}
    created = kube.create(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": pod}, "spec": spec},
        namespace=namespace,
    )
    bound = {"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": created["metadata"]["uid"]}
    asked = {
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
        "spec": {"audiences": [audience] if audience else [], "boundObjectRef": bound},
    }  # fmt: skip
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/reveal-collector/token"
    return str(kube.request("POST", path, asked)["status"]["token"])
