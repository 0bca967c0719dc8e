"""The operator's requests to the Kubernetes API, over the transport that all components share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from reveal_contract import VERSION
from reveal_contract.kube import transport
from reveal_contract.kube.errors import CONFLICT, NOT_FOUND, ApiError
from reveal_contract.kube.names import OPERATOR_MANAGER
from reveal_contract.kube.node_condition import REMOVAL
from reveal_contract.kube.paths import APPLY, JSON, MERGE, METADATA_ONLY, STRATEGIC_MERGE, path
from reveal_contract.kube.transport import Access, Transport
from reveal_operator.api import Manifest, Object, Page

CONNECT_S, READ_S = 5.0, 20.0
WATCH_S = 300  # the server ends a watch after this time
SILENCE_S = 90.0  # the server sends a bookmark each minute: a longer silence is a dead connection
CONNECTIONS = 16  # threads that send requests, and the watch of reports


def connect(kubeconfig: Path | None = None) -> KubernetesClient:
    """Return a client of the server in ``kubeconfig``, without one of the cluster we run in.

    Raises ``transport.NoAccessError``.
    """
    return KubernetesClient(
        transport.connect(
            kubeconfig,
            f"{OPERATOR_MANAGER}/{VERSION}",
            connect_s=CONNECT_S,
            read_s=READ_S,
            connections=CONNECTIONS,
        )
    )


class KubernetesClient:
    """``api.Api`` over HTTPS; every method may be called from any thread."""

    def __init__(self, connection: Transport) -> None:
        self._transport = connection

    def access(self) -> Access:
        """Return the credentials for kopf, which has a client of its own."""
        return self._transport.access()

    def now(self) -> float:
        return self._transport.now()

    def get(self, kind: str, name: str, namespace: str = "") -> Object | None:
        try:
            return self._transport.request("GET", path(kind, namespace, name))
        except ApiError as error:
            if error.status == NOT_FOUND:
                return None
            raise

    def apply(self, manifest: Manifest, subresource: str = "") -> Object:
        metadata = manifest["metadata"]
        namespace = metadata.get("namespace", "")
        return self._transport.request(
            "PATCH",
            path(manifest["kind"], namespace, metadata["name"], subresource),
            manifest,
            query=[("fieldManager", OPERATOR_MANAGER), ("force", "true")],
            content=APPLY,
        )

    def create(self, manifest: Manifest) -> Object:
        namespace = manifest["metadata"].get("namespace", "")
        return self._transport.request("POST", path(manifest["kind"], namespace), manifest)

    def merge(self, kind: str, name: str, namespace: str, patch: Manifest) -> Object:
        where = path(kind, namespace, name)
        return self._transport.request("PATCH", where, patch, content=MERGE)

    def remove_node_condition(self, name: str) -> None:
        where, patch = path("Node", "", name, "status"), {"status": {"conditions": [REMOVAL]}}
        try:
            self._transport.request("PATCH", where, patch, content=STRATEGIC_MERGE)
        except ApiError as error:
            if error.status != NOT_FOUND:
                raise

    def delete(
        self, kind: str, name: str, namespace: str = "", *, uid: str, version: str = ""
    ) -> bool:
        conditions = {"uid": uid} | ({"resourceVersion": version} if version else {})
        body = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": conditions,
            "propagationPolicy": "Background",
        }
        try:
            self._transport.request("DELETE", path(kind, namespace, name), body)
        except ApiError as error:
            if error.status in (NOT_FOUND, CONFLICT):
                return False
            raise
        return True

    def pages(
        self, kind: str, namespace: str = "", labels: str = "", *, metadata: bool = False
    ) -> Iterator[Page]:
        query = [("labelSelector", labels)] if labels else []
        accept = METADATA_ONLY if metadata else JSON
        for page in self._transport.pages(path(kind, namespace), query=query, accept=accept):
            # null where a list of metadata is empty
            yield Page(page["items"] or [], page["metadata"]["resourceVersion"])

    def watch(self, kind: str, since: str) -> Iterator[tuple[str, Object]]:
        query = [
            ("watch", "true"),
            ("allowWatchBookmarks", "true"),
            ("resourceVersion", since),
            ("timeoutSeconds", str(WATCH_S)),
        ]
        for event in self._transport.events(path(kind), query, SILENCE_S):
            yield event["type"], event["object"]

    def serves(self, group: str, version: str) -> frozenset[str]:
        try:
            answer = self._transport.request("GET", f"/apis/{group}/{version}")
        except ApiError as error:
            if error.status == NOT_FOUND:
                return frozenset()
            raise
        return frozenset(resource["name"] for resource in answer["resources"])

    def minor_version(self) -> int:
        """Return the minor version of the API server: 29 of 1.29+."""
        minor = self._transport.request("GET", "/version")["minor"]
        return int("".join(filter(str.isdigit, minor)) or 0)
