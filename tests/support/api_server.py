"""A real API server for tests: fixtures, and a small client that speaks of plain dicts.

``control_plane`` is shared by all tests of a session, so tests name what they make uniquely or
work in a ``namespace`` of their own, and leave its processes alone. Who restarts or breaks it
asks ``launch_control_plane`` for one of its own.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml

from cluster import binaries, plane
from cluster.plane import ControlPlane, Options

Object = dict[str, Any]
Launcher = Callable[..., ControlPlane]
_Found = TypeVar("_Found")
_PAUSE_S = 0.05
_REQUEST_S = 30
_CRD = "apiextensions.k8s.io/v1"


class ApiError(Exception):
    """A refused request: ``status`` is HTTP's, ``reason`` and ``message`` the API server's."""

    def __init__(self, status: int, body: str) -> None:
        try:
            details = json.loads(body)
        except ValueError:
            details = {"message": body}
        self.status = status
        self.reason: str = details.get("reason", "")
        self.message: str = details.get("message", body)
        super().__init__(f"{status} {self.reason}: {self.message}")


class Kube:
    """A client of one kubeconfig; objects are named by apiVersion and kind, as in YAML."""

    def __init__(self, kubeconfig: Path) -> None:
        # takes a second: only for tests that need it
        from kubernetes import config

        self._api = config.new_client_from_config(str(kubeconfig), persist_config=False)
        self._plural: dict[tuple[str, str], tuple[str, bool]] = {}

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> Any:
        """What the API server answers, parsed where it is JSON.

        ``ApiError`` when it refuses, ``ConnectionError`` when it is away.
        """
        from urllib3.exceptions import HTTPError

        call = self._api.param_serialize(
            method,
            path,
            query_params=list((query or {}).items()),
            header_params={"Accept": "application/json", "Content-Type": content_type},
            body=body,
            auth_settings=["BearerToken"],
        )
        try:
            answer = self._api.call_api(*call, _request_timeout=_REQUEST_S)
            text = answer.read().decode()
        except HTTPError as error:
            raise ConnectionError(f"{method} {path}: {error}") from error
        if answer.status >= 400:
            raise ApiError(answer.status, text)
        is_json = "json" in (answer.headers.get("Content-Type") or "")
        return json.loads(text) if is_json and text else text

    def apply(
        self,
        documents: str | Path | Mapping[str, Any] | Iterable[Mapping[str, Any]],
        *,
        namespace: str = "",
        manager: str = "test",
        dry_run: bool = False,
    ) -> list[Object]:
        """Server-side apply, conflicts forced, unknown fields refused; the objects as they are now.

        ``documents``: YAML text or a file of it, an object, or several. ``namespace`` is for
        those that name none.
        """
        query = {"fieldManager": manager, "force": "true", "fieldValidation": "Strict"}
        if dry_run:
            query["dryRun"] = "All"
        return [self._apply(item, namespace, query) for item in parsed(documents)]

    def create(self, document: Mapping[str, Any], *, namespace: str = "") -> Object:
        """POST, so that a second one of that name is refused (409)."""
        path = self._path_of(document, namespace).rpartition("/")[0]
        created: Object = self.request("POST", path, document, {"fieldValidation": "Strict"})
        return created

    def get(self, api_version: str, kind: str, name: str, namespace: str = "") -> Object | None:
        """The object, or None where there is none of that name."""
        try:
            found: Object = self.request("GET", self.path(api_version, kind, namespace, name))
        except ApiError as error:
            if error.status == 404:
                return None
            raise
        return found

    def items(
        self, api_version: str, kind: str, namespace: str = "", labels: str = ""
    ) -> list[Object]:
        """All of a kind: in one namespace, or in all where none is given."""
        query = {"labelSelector": labels} if labels else {}
        answer = self.request("GET", self.path(api_version, kind, namespace), query=query)
        # items of a list come without what they are
        return [{"apiVersion": api_version, "kind": kind, **item} for item in answer["items"]]

    def patch(self, target: Mapping[str, Any], body: Any, subresource: str = "") -> Object:
        """A JSON merge patch of the object that ``target`` names (apiVersion, kind, metadata)."""
        path = self._path_of(target) + (f"/{subresource}" if subresource else "")
        patched: Object = self.request(
            "PATCH", path, body, content_type="application/merge-patch+json"
        )
        return patched

    def delete(self, target: Mapping[str, Any], propagation: str = "Background") -> bool:
        """Whether there was one to delete."""
        body = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation}
        try:
            self.request("DELETE", self._path_of(target), body)
        except ApiError as error:
            if error.status == 404:
                return False
            raise
        return True

    def install(self, *definitions: Path) -> None:
        """Apply files of CustomResourceDefinitions and wait until they are served."""
        for definition in definitions:
            for applied in self.apply(definition):
                self.await_served(applied["metadata"]["name"])

    def await_served(self, definition: str) -> None:
        """Wait until the kind of a CustomResourceDefinition is served."""
        wait_for(partial(self._is_served, definition), 20, f"{definition} is served")

    def path(self, api_version: str, kind: str, namespace: str = "", name: str = "") -> str:
        """The URL path of an object, or of a collection where no name is given."""
        plural, namespaced = self._resource(api_version, kind)
        within = f"/namespaces/{namespace}" if namespaced and namespace else ""
        return f"{_root(api_version)}{within}/{plural}" + (f"/{name}" if name else "")

    def _apply(self, item: Mapping[str, Any], namespace: str, query: dict[str, str]) -> Object:
        applied: Object = self.request(
            "PATCH", self._path_of(item, namespace), item, query, "application/apply-patch+yaml"
        )
        return applied

    def _path_of(self, target: Mapping[str, Any], namespace: str = "") -> str:
        about = target["metadata"]
        within = about.get("namespace") or namespace or "default"
        return self.path(target["apiVersion"], target["kind"], within, about["name"])

    def _resource(self, api_version: str, kind: str) -> tuple[str, bool]:
        if (api_version, kind) not in self._plural:
            for resource in self.request("GET", _root(api_version))["resources"]:
                if "/" not in resource["name"]:  # those with one are subresources
                    self._plural[api_version, resource["kind"]] = (
                        resource["name"],
                        resource["namespaced"],
                    )
        if (api_version, kind) not in self._plural:
            raise LookupError(f"the API server knows no {kind} of {api_version}")
        return self._plural[api_version, kind]

    def _is_served(self, name: str) -> bool:
        definition = self.get(_CRD, "CustomResourceDefinition", name)
        if definition is None:
            return False
        conditions = definition.get("status", {}).get("conditions") or ()
        if not any(
            item["type"] == "Established" and item["status"] == "True" for item in conditions
        ):
            return False
        spec = definition["spec"]
        # established comes a moment before the paths answer
        served = [
            self._answers(f"/apis/{spec['group']}/{version['name']}/{spec['names']['plural']}")
            for version in spec["versions"]
            if version["served"]
        ]
        return all(served)

    def _answers(self, path: str) -> bool:
        try:
            self.request("GET", path, query={"limit": "1"})
        except ApiError as error:
            if error.status in (404, 429, 503):
                return False
            raise
        return True


def parsed(
    documents: str | Path | Mapping[str, Any] | Iterable[Mapping[str, Any]],
) -> list[Mapping[str, Any]]:
    """YAML text, a file of it, an object or several, as a list of objects."""
    if isinstance(documents, Path):
        documents = documents.read_text()
    if isinstance(documents, str):
        return [item for item in yaml.safe_load_all(documents) if item]
    if isinstance(documents, Mapping):
        return [documents]
    return list(documents)


def wait_for(check: Callable[[], _Found | None], seconds: float, what: str) -> _Found:
    """What ``check`` gives once that is true; an AssertionError that names ``what`` if never.

    An API server that is away, and an ``AssertionError`` of ``check``, count as not yet.
    """
    deadline = time.monotonic() + seconds
    last: object = None
    while True:
        try:
            last = found = check()
            if found:
                return found
        except (OSError, AssertionError) as error:
            last = error
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:g} s: {what}; last: {last!r}")
        time.sleep(_PAUSE_S)


def condition(thing: Mapping[str, Any] | None, kind: str) -> Object:
    """The condition of that type in an object's status; empty where there is none."""
    conditions = (thing or {}).get("status", {}).get("conditions", ())
    return next((item for item in conditions if item["type"] == kind), {})


def unique(prefix: str) -> str:
    """A name that no other test has."""
    return f"{prefix}-{uuid.uuid4().hex[:8]}"


@pytest.fixture(scope="session")
def control_plane() -> Iterator[ControlPlane]:
    """etcd and an API server, without controllers; skips where its programs are not there."""
    if absent := binaries.missing(binaries.NEEDED):
        pytest.skip(f"no {', '.join(absent)}: `make assets` builds what a real API server needs")
    with plane.running(Options(controllers=False)) as running:
        yield running


@pytest.fixture
def launch_control_plane() -> Iterator[Launcher]:
    """Starts further ones, to be broken: ``launch_control_plane(audit=True)`` (``Options``)."""
    with ExitStack() as stack:

        def launch(**options: Any) -> ControlPlane:
            chosen = Options(**options)
            needed = binaries.RUNNING if chosen.controllers else binaries.NEEDED
            if absent := binaries.missing(needed):
                pytest.skip(f"no {', '.join(absent)}: `make assets` builds them")
            return stack.enter_context(plane.running(chosen))

        yield launch


@pytest.fixture(scope="session")
def kube(control_plane: ControlPlane) -> Kube:
    """The administrator of ``control_plane``."""
    return Kube(control_plane.kubeconfig)


@pytest.fixture
def namespace(kube: Kube) -> Iterator[str]:
    """A fresh namespace, deleted afterwards."""
    name = unique("test")
    manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    kube.create(manifest)
    yield name
    kube.delete(manifest)


def _root(api_version: str) -> str:
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
