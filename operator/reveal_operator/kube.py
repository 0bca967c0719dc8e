"""The client of the Kubernetes API: the only module that imports ``kubernetes``.

Of that package only the transport is used (credentials, TLS, renewal of tokens): objects are plain
dicts, so nothing is lost that its models do not know, and none of the models is imported.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubernetes import config
from kubernetes.client.api_client import ApiClient
from kubernetes.client.configuration import Configuration
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from reveal_contract import VERSION
from reveal_contract.kube.names import (
    API_VERSION,
    OPERATOR_MANAGER,
    PROFILE_KIND,
    PROFILES,
    REPORT_KIND,
    REPORTS,
)
from reveal_operator.api import AWAY, CONFLICT, NOT_FOUND, ApiError, Manifest, Object, Page

CONNECT_S, READ_S = 5.0, 20.0
WATCH_S = 300  # the server ends a watch then
SILENCE_S = 90.0  # the server sends a bookmark a minute: a longer silence is a dead connection
PAGE = 500
CONNECTIONS = 16  # threads that ask, and the watch of reports
_CHUNK = 1 << 16
_METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_APPLY = "application/apply-patch+yaml"
_MERGE = "application/merge-patch+json"
_JSON = "application/json"

# kind -> apiVersion, resource
RESOURCES = {
    "ConfigMap": ("v1", "configmaps"),
    "Node": ("v1", "nodes"),
    "Pod": ("v1", "pods"),
    "DaemonSet": ("apps/v1", "daemonsets"),
    "Deployment": ("apps/v1", "deployments"),
    "PodDisruptionBudget": ("policy/v1", "poddisruptionbudgets"),
    "Event": ("events.k8s.io/v1", "events"),
    PROFILE_KIND: (API_VERSION, PROFILES),
    REPORT_KIND: (API_VERSION, REPORTS),
}


class NoAccess(Exception):
    """There is no way to an API server: no usable kubeconfig, not inside a cluster."""


@dataclass(frozen=True)
class Connection:
    """What another client needs to be the same user on the same server."""

    server: str
    ca_path: str | None
    insecure: bool
    scheme: str | None
    token: str | None
    certificate_path: str | None
    key_path: str | None


def load(kubeconfig: Path | None = None) -> Kube:
    """The server that ``kubeconfig`` names, without one that of the cluster we run in.

    Raises ``NoAccess``.
    """
    configuration = Configuration()
    configuration.connection_pool_maxsize = CONNECTIONS
    configuration.retries = False  # the work queue repeats, with pauses
    try:
        if kubeconfig is None:
            config.load_incluster_config(configuration)  # type: ignore[no-untyped-call]
        else:
            config.load_kube_config(  # type: ignore[no-untyped-call]
                config_file=str(kubeconfig),
                client_configuration=configuration,
                persist_config=False,
            )
    except (config.ConfigException, OSError, ValueError) as error:
        where = "inside a cluster (else give --kubeconfig)" if kubeconfig is None else kubeconfig
        raise NoAccess(f"no access to the Kubernetes API: {where}: {error}") from None
    return Kube(configuration)


class Kube:
    """``Api`` over HTTPS; every method may be called from any thread."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self._client = ApiClient(configuration)
        self._client.user_agent = f"{OPERATOR_MANAGER}/{VERSION}"

    def connection(self) -> Connection:
        """With the token as it is now: those of pods are renewed."""
        settings = self._configuration
        header: str = settings.get_api_key_with_prefix("BearerToken") or ""
        scheme, _, token = header.rpartition(" ")
        return Connection(
            server=settings.host,
            ca_path=settings.ssl_ca_cert,
            insecure=not settings.verify_ssl,
            scheme=scheme.capitalize() or None,
            token=token or None,
            certificate_path=settings.cert_file,
            key_path=settings.key_file,
        )

    def get(self, kind: str, name: str, namespace: str = "") -> Object | None:
        try:
            found: Object = self._json("GET", path(kind, namespace, name))
        except ApiError as error:
            if error.status == NOT_FOUND:
                return None
            raise
        return found

    def apply(self, manifest: Manifest, subresource: str = "") -> Object:
        metadata = manifest["metadata"]
        where = path(manifest["kind"], metadata.get("namespace", ""), metadata["name"])
        applied: Object = self._json(
            "PATCH",
            f"{where}/{subresource}" if subresource else where,
            body=manifest,
            query=[("fieldManager", OPERATOR_MANAGER), ("force", "true")],
            content=_APPLY,
        )
        return applied

    def create(self, manifest: Manifest) -> Object:
        where = path(manifest["kind"], manifest["metadata"].get("namespace", ""))
        made: Object = self._json("POST", where, body=manifest)
        return made

    def merge(self, kind: str, name: str, namespace: str, patch: Manifest) -> Object:
        where = path(kind, namespace, name)
        merged: Object = self._json("PATCH", where, body=patch, content=_MERGE)
        return merged

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
            self._json("DELETE", path(kind, namespace, name), body=body)
        except ApiError as error:
            if error.status in (NOT_FOUND, CONFLICT):
                return False
            raise
        return True

    def pages(
        self, kind: str, namespace: str = "", labels: str = "", *, metadata: bool = False
    ) -> Iterator[Page]:
        query = [("limit", str(PAGE))] + ([("labelSelector", labels)] if labels else [])
        accept = _METADATA if metadata else _JSON
        token = ""
        while True:
            more = [("continue", token)] if token else []
            answer = self._json("GET", path(kind, namespace), query=query + more, accept=accept)
            token = answer["metadata"].get("continue", "")
            # null where a list of metadata is empty
            yield Page(answer["items"] or [], answer["metadata"]["resourceVersion"])
            if not token:
                return

    def watch(self, kind: str, since: str) -> Iterator[tuple[str, Object]]:
        query = [
            ("watch", "true"),
            ("allowWatchBookmarks", "true"),
            ("resourceVersion", since),
            ("timeoutSeconds", str(WATCH_S)),
        ]
        response = self._send("GET", path(kind), query=query, silence=SILENCE_S)
        try:
            for line in _lines(response.stream(_CHUNK)):
                change = json.loads(line)
                if change["type"] == "ERROR":
                    raise _refusal(change["object"].get("code", AWAY), change["object"])
                yield change["type"], change["object"]
        except (HTTPError, OSError, ValueError) as error:
            raise ApiError(AWAY, "Unreachable", f"watch of {kind}: {error}") from None
        finally:
            response.close()

    def serves(self, group: str, version: str) -> frozenset[str]:
        try:
            answer = self._json("GET", f"/apis/{group}/{version}")
        except ApiError as error:
            if error.status == NOT_FOUND:
                return frozenset()
            raise
        return frozenset(resource["name"] for resource in answer["resources"])

    def minor(self) -> int:
        """The minor version of the API server: 29 of 1.29+."""
        told = self._json("GET", "/version")["minor"]
        return int("".join(filter(str.isdigit, told)) or 0)

    def _json(self, method: str, where: str, **more: Any) -> Any:
        response = self._send(method, where, **more)
        try:
            return json.loads(response.data)
        except (HTTPError, OSError, ValueError) as error:
            raise ApiError(AWAY, "Unreachable", f"{method} {where}: {error}") from None

    def _send(
        self,
        method: str,
        where: str,
        *,
        body: Manifest | None = None,
        query: list[tuple[str, str]] | None = None,
        content: str = _JSON,
        accept: str = _JSON,
        silence: float = READ_S,
    ) -> Any:
        """The response of urllib3, body unread.  Raises ``ApiError``."""
        request = self._client.param_serialize(
            method,
            where,
            query_params=query or [],
            header_params={"Accept": accept, "Content-Type": content},
            body=body,
            auth_settings=["BearerToken"],
        )
        try:
            answer = self._client.call_api(*request, _request_timeout=(CONNECT_S, silence))
            if 200 <= answer.status <= 299:
                return answer.response
            raise _refusal(answer.status, _status(answer.response.data, answer.reason))
        except (HTTPError, ApiException, OSError) as error:
            raise ApiError(AWAY, "Unreachable", f"{method} {where}: {error}") from None


def path(kind: str, namespace: str = "", name: str = "") -> str:
    """The URL path of an object, or of a list: of one namespace, or of the cluster."""
    api_version, plural = RESOURCES[kind]
    root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
    within = f"/namespaces/{namespace}" if namespace else ""
    return f"{root}{within}/{plural}" + (f"/{name}" if name else "")


def _lines(chunks: Iterator[bytes]) -> Iterator[bytes]:
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        yield from (line for line in whole if line)


def _status(body: bytes, reason: str) -> Object:
    """The metav1.Status of an answer; proxies in between answer with something else."""
    try:
        told = json.loads(body)
    except ValueError:
        told = None
    if isinstance(told, dict) and told.get("kind") == "Status":
        return told
    return {"reason": reason, "message": body[:200].decode(errors="replace") or reason}


def _refusal(code: int, status: Object) -> ApiError:
    causes = (status.get("details") or {}).get("causes") or ()
    return ApiError(
        code,
        status.get("reason", ""),
        status.get("message", ""),
        tuple(cause.get("reason", "") for cause in causes),
    )
