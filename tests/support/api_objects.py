"""Objects of our API for tests on a real API server."""

from __future__ import annotations

from typing import Any

from reveal_contract.finding import Finding
from reveal_contract.kube import names
from reveal_contract.kube.anomaly_report import report
from support.api_server import Kube, unique

Object = dict[str, Any]
_APPLY = "application/apply-patch+yaml"


def profile(spec: Object | None = None, name: str = "") -> Object:
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.PROFILE_KIND,
        "metadata": {"name": name or unique("crds")},
        "spec": spec or {},
    }


def report_of(finding: Finding, profile_name: str) -> tuple[Object, Object]:
    """The object to create, and the one with the whole status to apply."""
    result = report(finding, profile_name, 1)
    return result.to_create(), result.to_apply()


def apply_status(api: Kube, document: Object, manager: str = names.ANALYZER_MANAGER) -> Object:
    """Server-side apply of the status alone; another manager's field is a conflict (409)."""
    target = {key: document[key] for key in ("apiVersion", "kind", "status")}
    name = document["metadata"]["name"]
    path = api.path(target["apiVersion"], target["kind"], name=name)
    query = {"fieldManager": manager, "fieldValidation": "Strict"}
    body = {**target, "metadata": {"name": name}}
    stored: Object = api.request("PATCH", f"{path}/status", body, query, _APPLY)
    return stored
