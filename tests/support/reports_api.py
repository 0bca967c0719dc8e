"""The API of a cluster with AnomalyReports in memory, as the kubectl plugin asks for it."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote

from reveal_contract.finding import Finding
from reveal_contract.kube.anomaly_report import report
from reveal_contract.kube.errors import ApiError, NotFoundError
from reveal_contract.kube.names import LABEL_STATE, PROFILE_KIND, REPORT_KIND, SAMPLES_PORT
from reveal_contract.kube.paths import JSON, MERGE, path

NOW_S = 1_700_003_600  # an hour after the findings of ``finding_factory``
PROFILES_PATH = path(PROFILE_KIND)
_ANALYZERS = "app.kubernetes.io/component=analyzer"
SERVER = "https://cluster.example:6443"

Object = dict[str, Any]
Query = Sequence[tuple[str, str]]


class ReportsApi:
    """``Requests`` of the plugin; ``errors`` are raised by requests with that method.

    ``pods`` are running analyzers of all ``profiles``, each with the port of this host that stands
    for its own.
    """

    def __init__(self, *findings: Finding, profile: str = "p") -> None:
        self.items = {
            item["metadata"]["name"]: item for item in (stored(each, profile) for each in findings)
        }
        self.errors: dict[str, ApiError] = {}
        self.requests: list[str] = []
        self.pods: dict[str, int] = {}
        self.profiles = [profile]

    @property
    def server(self) -> str:
        return SERVER

    def now(self) -> float:
        return NOW_S

    def request(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        query: Query = (),
        content: str = JSON,
    ) -> Object:
        self._asked(method, path)
        name = unquote(path.rpartition("/")[2])
        if name not in self.items:
            raise NotFoundError("not found", 404)
        if body is not None:
            assert (method, content) == ("PATCH", MERGE)
            self._merge(name, body)
        return self.items[name]

    def pages(self, path: str, *, query: Query = (), accept: str = JSON) -> Iterator[Object]:
        if path.endswith("/pods"):
            yield self._pods(path, dict(query)["labelSelector"])
            return
        if path == PROFILES_PATH:
            yield {"items": [{"metadata": {"name": name}} for name in self.profiles]}
            return
        self._asked("LIST", path)
        only_open = ("labelSelector", f"{LABEL_STATE}=Open") in query
        for item in self.items.values():
            if not only_open or item["metadata"]["labels"][LABEL_STATE] == "Open":
                yield {"items": [item]}

    @contextmanager
    def forwarded(self, path: str, port: int) -> Iterator[socket.socket]:
        if (error := self.errors.get("FORWARD")) is not None:
            raise error
        assert port == SAMPLES_PORT
        pod, subresource = path.split("/")[-2:]
        assert subresource == "portforward"
        with socket.create_connection(("127.0.0.1", self.pods[pod]), 10) as connection:
            yield connection

    def _pods(self, path: str, selector: str) -> Object:
        if (error := self.errors.get("PODS")) is not None:
            raise error
        selectors = (f"{_ANALYZERS},reveal.dev/profile={name}" for name in self.profiles)
        assert selector in selectors
        here = self.pods if path == "/api/v1/namespaces/reveal-system/pods" else {}
        return {
            "items": [
                {"metadata": {"name": name}, "status": {"phase": phase}}
                for name, phase in [*((each, "Running") for each in here), ("gone", "Failed")]
            ]
        }

    def _asked(self, method: str, where: str) -> None:
        assert where.startswith(path(REPORT_KIND))
        self.requests.append(method)
        if (error := self.errors.get(method)) is not None:
            raise error

    def _merge(self, name: str, body: Mapping[str, Any]) -> None:
        metadata = self.items[name]["metadata"]
        merged = {**metadata.get("annotations", {}), **body["metadata"]["annotations"]}
        metadata["annotations"] = {key: text for key, text in merged.items() if text is not None}


def stored(finding: Finding, profile: str = "p") -> Object:
    """Return the report of a finding as the API has it."""
    whole = report(finding, profile, 1)
    return {**whole.to_create(), "status": whole.status}
