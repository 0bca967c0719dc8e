"""URL paths and content types of the Kubernetes API for the kinds that this project uses."""

from __future__ import annotations

from urllib.parse import quote

from reveal_contract.kube.events import EVENTS_API
from reveal_contract.kube.names import API_VERSION, PROFILE_KIND, PROFILES, REPORT_KIND, REPORTS

JSON = "application/json"
APPLY = "application/apply-patch+yaml"  # its body is JSON, which is YAML too
MERGE = "application/merge-patch+json"
STRATEGIC_MERGE = "application/strategic-merge-patch+json"
METADATA_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

# kind -> apiVersion, resource
RESOURCES = {
    "ConfigMap": ("v1", "configmaps"),
    "Node": ("v1", "nodes"),
    "Pod": ("v1", "pods"),
    "DaemonSet": ("apps/v1", "daemonsets"),
    "Deployment": ("apps/v1", "deployments"),
    "PodDisruptionBudget": ("policy/v1", "poddisruptionbudgets"),
    "Event": (EVENTS_API, "events"),
    "TokenReview": ("authentication.k8s.io/v1", "tokenreviews"),
    PROFILE_KIND: (API_VERSION, PROFILES),
    REPORT_KIND: (API_VERSION, REPORTS),
}


def path(kind: str, namespace: str = "", name: str = "", subresource: str = "") -> str:
    """Return the path of an object, or without ``name`` of a list.

    Without ``namespace`` the object or list belongs to the cluster.
    """
    api_version, plural = RESOURCES[kind]
    root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
    parts = ["namespaces", namespace] if namespace else []
    parts += [part for part in (plural, name, subresource) if part]
    return "/".join([root, *(quote(part, safe="") for part in parts)])
