"""The Kubernetes API by the official client: the only module that imports it.

Only its transport is used (addresses, certificates, tokens that are renewed on disk, kubeconfig
files of all kinds) with plain objects: the models would cost memory and check what the server
checks anyway.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import urllib3
from kubernetes import client, config

from reveal_analyzer.sinks.kube.errors import (
    ApiError,
    AwayError,
    ExistsError,
    InvalidError,
    MissingError,
    Object,
    RefusedError,
)
from reveal_contract import VERSION
from reveal_contract.kube.events import EVENTS_API
from reveal_contract.kube.names import (
    ANALYZER_MANAGER,
    API_VERSION,
    LABEL_PROFILE,
    LABEL_STATE,
    PROFILE_KIND,
    PROFILES,
    REPORTS,
    label_value,
)
from reveal_contract.settings import SettingsError

CONNECT_SECONDS, READ_SECONDS = 3.0, 10.0
PAGE = 500
_APPLY = "application/apply-patch+yaml"  # its body is JSON, which is YAML too
_MERGE = "application/merge-patch+json"
_STRATEGIC = "application/strategic-merge-patch+json"
_OURS = f"/apis/{API_VERSION}"
_MANAGER = {"fieldManager": ANALYZER_MANAGER}
_FORCED = {**_MANAGER, "force": "true"}


def connect(kubeconfig: Path | None = None) -> KubernetesApi:
    """By a kubeconfig file, else as a pod of the cluster.

    Raises ``SettingsError`` with what is missing; nothing is asked yet.
    """
    settings = client.Configuration()
    try:
        if kubeconfig is not None:
            config.load_kube_config(  # type: ignore[no-untyped-call]
                str(kubeconfig), client_configuration=settings
            )
        else:
            config.load_incluster_config(  # type: ignore[no-untyped-call]
                client_configuration=settings
            )
    except Exception as error:  # of files, YAML, plugins that log in: any kind
        where = kubeconfig or "this is no pod of a cluster, give --kubeconfig FILE"
        raise SettingsError(f"no way to the Kubernetes API: {where}: {error}") from None
    settings.retries = False  # who asks knows what may be asked again, and when
    return KubernetesApi(client.ApiClient(settings))


class KubernetesApi:
    """The calls of ``calls.Api``."""

    def __init__(self, transport: client.ApiClient) -> None:
        self._transport = transport
        transport.user_agent = f"{ANALYZER_MANAGER}/{VERSION}"

    def profile(self, name: str) -> Object:
        return self._ask("GET", _path(_OURS, PROFILES, name))

    def apply_profile_status(self, name: str, status: Mapping[str, Any]) -> None:
        body = {
            "apiVersion": API_VERSION,
            "kind": PROFILE_KIND,
            "metadata": {"name": name},
            "status": dict(status),
        }
        self._ask("PATCH", _path(_OURS, PROFILES, name, "status"), body, _APPLY, _FORCED)

    def open_reports(self, profile: str) -> Iterator[Object]:
        selector = f"{LABEL_PROFILE}={label_value(profile)},{LABEL_STATE}=Open"
        query = {"labelSelector": selector, "limit": str(PAGE)}
        while True:
            page = self._ask("GET", _path(_OURS, REPORTS), query=query)
            yield from page.get("items", [])
            following = page.get("metadata", {}).get("continue")
            if not following:
                return
            query["continue"] = following

    def create_report(self, body: Object) -> Object:
        return self._ask("POST", _path(_OURS, REPORTS), body, query=_MANAGER)

    def apply_report_status(self, name: str, body: Object) -> None:
        self._ask("PATCH", _path(_OURS, REPORTS, name, "status"), body, _APPLY, _FORCED)

    def label_report(self, name: str, labels: Mapping[str, str]) -> None:
        body = {"metadata": {"labels": dict(labels)}}
        self._ask("PATCH", _path(_OURS, REPORTS, name), body, _MERGE, _MANAGER)

    def create_event(self, namespace: str, body: Object) -> None:
        path = _path(f"/apis/{EVENTS_API}", "namespaces", namespace, "events")
        self._ask("POST", path, body, query=_MANAGER)

    def patch_event(self, namespace: str, name: str, patch: Object) -> None:
        path = _path(f"/apis/{EVENTS_API}", "namespaces", namespace, "events", name)
        self._ask("PATCH", path, patch, _MERGE, _MANAGER)

    def node_uid(self, name: str) -> str:
        found = self._ask("GET", _path("/api/v1", "nodes", name))
        return str(found["metadata"]["uid"])

    def patch_node_conditions(self, name: str, conditions: list[Object]) -> None:
        body = {"status": {"conditions": conditions}}
        path = _path("/api/v1", "nodes", name, "status")
        self._ask("PATCH", path, body, _STRATEGIC, _MANAGER)

    def close(self) -> None:
        self._transport.close()  # type: ignore[no-untyped-call]

    def _ask(
        self,
        method: str,
        path: str,
        body: Object | None = None,
        kind: str = "application/json",
        query: Mapping[str, str] | None = None,
    ) -> Object:
        headers = {"Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = kind
        what = f"{method} {path}"
        try:
            asked = self._transport.param_serialize(
                method, path, query_params=list((query or {}).items()), header_params=headers,
                body=body, auth_settings=["BearerToken"],
            )  # fmt: skip
            answer = self._transport.call_api(
                *asked, _request_timeout=(CONNECT_SECONDS, READ_SECONDS)
            )
            data: bytes = answer.read()  # type: ignore[no-untyped-call]
        except (urllib3.exceptions.HTTPError, client.ApiException, OSError) as error:
            raise AwayError(f"{what}: {_short(error)}") from None
        except config.ConfigException as error:  # the token's file, as it is renewed
            raise RefusedError(f"{what}: {error}") from None
        if answer.status >= 300:
            raise refusal(what, answer.status, data, answer.headers.get("Retry-After", ""))
        return _object(what, data)


def refusal(what: str, status: int, data: bytes, after: str = "") -> ApiError:
    """The error that an answer of the API amounts to (API conventions, "Response Status Kind")."""
    said = _status_of(data)
    reason = str(said.get("reason", ""))
    text = f"{what}: {status} {reason}: {said.get('message', '')}"[:1000]
    details = said.get("details")
    named = isinstance(details, dict) and bool(details.get("name"))
    if status == 404 and named:
        return MissingError(text)
    if status == 409 and reason == "AlreadyExists":
        return ExistsError(text)
    if status in (401, 403, 404):
        return RefusedError(text)
    if status in (400, 405, 413, 415, 422):
        return InvalidError(text)
    return AwayError(text, float(after) if after.isdigit() else 0.0, answered=status == 500)


def _object(what: str, data: bytes) -> Object:
    try:
        found = json.loads(data)
    except ValueError:
        found = None
    if not isinstance(found, dict):  # of a proxy in between
        raise AwayError(f"{what}: the answer is no object: {data[:80]!r}")
    return found


def _status_of(data: bytes) -> Object:
    try:
        said = json.loads(data)
    except ValueError:
        said = data.decode(errors="replace").strip()
    return said if isinstance(said, dict) else {"message": str(said)[:200]}


def _path(root: str, *parts: str) -> str:
    return "/".join([root, *(quote(part, safe="") for part in parts)])


def _short(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:300]
