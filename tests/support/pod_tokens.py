"""Tokens of pods of collectors, as the kubelet mounts them."""

from __future__ import annotations

from reveal_contract.origin import AUDIENCE
from support.api_server import Kube

ACCOUNT = "reveal-collector"


def pod_token(kube: Kube, namespace: str, pod: str, node: str, audience: str = AUDIENCE) -> str:
    """Return a token of a new pod on a node; "" is the audience of the API server itself."""
    containers = [{"name": "collector", "image": "none"}]
    spec = {"nodeName": node, "serviceAccountName": ACCOUNT, "containers": containers}
    created = kube.create(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": pod}, "spec": spec},
        namespace=namespace,
    )
    bound = {"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": created["metadata"]["uid"]}
    asked = {
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
        "spec": {"audiences": [audience] if audience else [], "boundObjectRef": bound},
    }  # fmt: skip
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{ACCOUNT}/token"
    return str(kube.request("POST", path, asked)["status"]["token"])
