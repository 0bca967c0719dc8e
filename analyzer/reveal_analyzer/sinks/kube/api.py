"""The requests of the Kubernetes sink, over the transport that all components share.

The client package is imported by ``connect`` only: most analyzers of tests and tools need none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from reveal_analyzer.sinks.kube.older_schema import OlderSchema
from reveal_contract import VERSION
from reveal_contract.kube.names import (
    ANALYZER_MANAGER,
    API_VERSION,
    LABEL_NODE,
    LABEL_PROFILE,
    LABEL_SEVERITY,
    LABEL_STATE,
    PROFILE_KIND,
    REPORT_KIND,
    label_value,
)
from reveal_contract.kube.node_condition import URGENT
from reveal_contract.kube.paths import APPLY, JSON, MERGE, METADATA_ONLY, STRATEGIC_MERGE, path
from reveal_contract.settings import SettingsError

if TYPE_CHECKING:
    from reveal_contract.kube.transport import Transport

CONNECT_SECONDS, READ_SECONDS = 3.0, 10.0
_MANAGER = [("fieldManager", ANALYZER_MANAGER)]
_FORCED = [*_MANAGER, ("force", "true")]
_OF_VERIFICATION = [("fieldManager", f"{ANALYZER_MANAGER}-verification"), ("force", "true")]
_URGENT = ",".join(URGENT)

Object = dict[str, Any]


class SinkApi(Protocol):
    """The requests of the sink; each raises ``ApiError`` and returns within its timeouts."""

    def profile(self, name: str) -> Object:
        """Return a RevealProfile."""

    def apply_profile_status(self, name: str, status: Mapping[str, Any]) -> None:
        """Write the analyzer's fields of a profile's status, by server-side apply."""

    def open_reports(self, profile: str) -> Iterator[Object]:
        """Yield the AnomalyReports of a profile that are labelled as open, page by page."""

    def open_reports_on(self, node: str) -> Iterator[Object]:
        """Yield the AnomalyReports of a node, of all profiles, that are labelled as open."""

    def urgent_metadata(self, profile: str) -> Iterator[Object]:
        """Yield the metadata of a profile's AnomalyReports that are labelled as open and urgent."""

    def create_report(self, body: Object) -> Object:
        """Create a report; ``AlreadyExistsError`` where there is one of that name."""

    def apply_report_status(self, name: str, body: Object) -> Object:
        """Write the whole status, by server-side apply, and return the report.

        ``NotFoundError`` without such a report.
        """

    def apply_verification(self, name: str, body: Object) -> None:
        """Write ``status.verification`` alone, as another manager: nothing else is removed.

        ``NotFoundError`` without such a report.
        """

    def label_report(self, name: str, labels: Mapping[str, str]) -> None:
        """Set labels of a report."""

    def create_event(self, namespace: str, body: Object) -> None:
        """Create an Event; ``AlreadyExistsError`` where there is one of that name."""

    def patch_event(self, namespace: str, name: str, patch: Object) -> None:
        """Merge a patch into an Event."""

    def node(self, name: str) -> Object:
        """Return a Node."""

    def node_names(self) -> Iterator[str]:
        """Yield the names of all nodes, page by page."""

    def pod_metadata(self, node: str) -> Iterator[Object]:
        """Yield the pods of a node with their metadata only, page by page."""

    def patch_node_conditions(self, name: str, conditions: list[Object]) -> None:
        """Merge conditions by their types (strategic merge); ``$patch: delete`` removes one."""

    def review_token(self, token: str, audience: str) -> Object:
        """Return the status of a TokenReview: whether a token is valid, and whose it is."""

    def close(self) -> None:
        """Close the connections."""


def connect(kubeconfig: Path | None = None) -> KubernetesApi:
    """Return the API by a kubeconfig file, without one as a pod of the cluster.

    Raises ``SettingsError`` where there is no way to it.
    """
    from reveal_contract.kube import transport  # noqa: PLC0415 - imports the client package

    agent = f"{ANALYZER_MANAGER}/{VERSION}"
    try:
        return KubernetesApi(
            transport.connect(kubeconfig, agent, connect_s=CONNECT_SECONDS, read_s=READ_SECONDS)
        )
    except transport.NoAccessError as error:
        raise SettingsError(str(error)) from None


class KubernetesApi:
    """``SinkApi`` over HTTPS."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._profiles, self._reports = OlderSchema(PROFILE_KIND), OlderSchema(REPORT_KIND)

    def profile(self, name: str) -> Object:
        return self._transport.request("GET", path(PROFILE_KIND, name=name))

    def apply_profile_status(self, name: str, status: Mapping[str, Any]) -> None:
        body = {
            "apiVersion": API_VERSION,
            "kind": PROFILE_KIND,
            "metadata": {"name": name},
            "status": dict(status),
        }
        where = path(PROFILE_KIND, "", name, "status")
        self._profiles.send(body, partial(self._apply, where))

    def open_reports(self, profile: str) -> Iterator[Object]:
        return self._list(_open_with(LABEL_PROFILE, profile))

    def open_reports_on(self, node: str) -> Iterator[Object]:
        return self._list(_open_with(LABEL_NODE, node))

    def urgent_metadata(self, profile: str) -> Iterator[Object]:
        selector = f"{_open_with(LABEL_PROFILE, profile)},{LABEL_SEVERITY} in ({_URGENT})"
        return self._list(selector, METADATA_ONLY)

    def create_report(self, body: Object) -> Object:
        return self._create(path(REPORT_KIND), body)

    def apply_report_status(self, name: str, body: Object) -> Object:
        where = path(REPORT_KIND, "", name, "status")
        return self._reports.send(body, partial(self._apply, where))

    def apply_verification(self, name: str, body: Object) -> None:
        where = path(REPORT_KIND, "", name, "status")
        send = partial(
            self._transport.request, "PATCH", where, query=_OF_VERIFICATION, content=APPLY
        )
        self._reports.send(body, send)

    def label_report(self, name: str, labels: Mapping[str, str]) -> None:
        self._merge(path(REPORT_KIND, "", name), {"metadata": {"labels": dict(labels)}})

    def create_event(self, namespace: str, body: Object) -> None:
        self._create(path("Event", namespace), body)

    def patch_event(self, namespace: str, name: str, patch: Object) -> None:
        self._merge(path("Event", namespace, name), patch)

    def node(self, name: str) -> Object:
        return self._transport.request("GET", path("Node", name=name))

    def node_names(self) -> Iterator[str]:
        for page in self._transport.pages(path("Node"), accept=METADATA_ONLY):
            for item in page.get("items") or ():
                yield str(item["metadata"]["name"])

    def pod_metadata(self, node: str) -> Iterator[Object]:
        query = [("fieldSelector", f"spec.nodeName={node}")]
        for page in self._transport.pages(path("Pod"), query=query, accept=METADATA_ONLY):
            yield from page.get("items") or ()

    def patch_node_conditions(self, name: str, conditions: list[Object]) -> None:
        body = {"status": {"conditions": conditions}}
        self._merge(path("Node", "", name, "status"), body, STRATEGIC_MERGE)

    def review_token(self, token: str, audience: str) -> Object:
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": token, "audiences": [audience]},
        }
        found: Object = self._create(path("TokenReview"), body).get("status") or {}
        return found

    def close(self) -> None:
        self._transport.close()

    def _list(self, selector: str, accept: str = JSON) -> Iterator[Object]:
        query = [("labelSelector", selector)]
        for page in self._transport.pages(path(REPORT_KIND), query=query, accept=accept):
            yield from page.get("items") or ()

    def _create(self, where: str, body: Object) -> Object:
        return self._transport.request("POST", where, body, query=_MANAGER)

    def _apply(self, where: str, body: Object) -> Object:
        return self._transport.request("PATCH", where, body, query=_FORCED, content=APPLY)

    def _merge(self, where: str, body: Object, content: str = MERGE) -> None:
        self._transport.request("PATCH", where, body, query=_MANAGER, content=content)


def _open_with(label: str, value: str) -> str:
    return f"{label}={label_value(value)},{LABEL_STATE}=Open"
