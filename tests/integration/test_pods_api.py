"""The pod watch against a server that speaks the list and watch protocol over real HTTP."""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from reveal_collector.subjects.pods import api
from reveal_collector.subjects.pods.api import ApiAccess, ApiPods, PodTable
from reveal_collector.subjects.pods.podlist import pods_of
from support.polling import wait_until


def pod(name: str, uid: str, version: int) -> dict[str, Any]:
    meta = {"name": name, "namespace": "x", "uid": uid, "resourceVersion": str(version)}
    return {"metadata": meta, "spec": {"nodeName": "n1"}, "status": {}}


class Server(ThreadingHTTPServer):
    """``pods`` is the list at ``version``; what is put into ``events`` goes to the open watch."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.pods: list[dict[str, Any]] = []
        self.version = 10
        self.refuse = 0
        self.asked: list[dict[str, str]] = []
        self.tokens: list[str] = []
        self.events: queue.Queue[dict[str, Any] | None] = queue.Queue()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        asked = {key: item[0] for key, item in parse_qs(urlsplit(self.path).query).items()}
        self.server.asked.append(asked)
        self.server.tokens.append(self.headers.get("Authorization", ""))
        if self.server.refuse:
            body = json.dumps({"kind": "Status", "message": "not today"}).encode()
            self._head(self.server.refuse)
            self.wfile.write(body)
            return
        self._head(200)
        if asked.get("watch"):
            self._watch()
        else:
            listed = {"metadata": {"resourceVersion": str(self.server.version)},
                      "items": self.server.pods}  # fmt: skip
            self.wfile.write(json.dumps(listed).encode())

    def _head(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.end_headers()

    def _watch(self) -> None:
        while (event := self.server.events.get()) is not None:
            self.wfile.write(json.dumps(event).encode() + b"\n")
            self.wfile.flush()

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@pytest.fixture
def server() -> Iterator[Server]:
    fake = Server()
    thread = threading.Thread(target=fake.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield fake
    fake.events.put(None)
    fake.shutdown()
    fake.server_close()
    thread.join(5)


@pytest.fixture
def pods(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ApiPods]:
    monkeypatch.setattr(api, "MIN_RETRY_S", 0.01)
    monkeypatch.setattr(api, "OVER_SECONDS", 0.0)
    (tmp_path / "token").write_text("secret\n")
    api_pods = ApiPods(lambda: ApiAccess(server.url, token=tmp_path / "token"), "n1")
    yield api_pods
    server.events.put(None)
    api_pods.stop()


def names(pods: ApiPods) -> set[str]:
    return {item.name for item in pods.index.pods}


def event(kind: str, thing: dict[str, Any]) -> dict[str, Any]:
    return {"type": kind, "object": thing}


def test_pods_are_listed_then_followed(server: Server, pods: ApiPods) -> None:
    server.pods = [pod("a", "u1", 5)]
    pods.start(lambda: None)
    wait_until(lambda: names(pods) == {"a"})
    server.events.put(event("ADDED", pod("b", "u2", 11)))
    wait_until(lambda: names(pods) == {"a", "b"})
    server.events.put(event("DELETED", pod("a", "u1", 12)))
    wait_until(lambda: names(pods) == {"b"})
    selectors = {asked["fieldSelector"] for asked in server.asked}
    assert selectors == {"spec.nodeName=n1,status.phase!=Failed,status.phase!=Succeeded"}
    assert server.asked[1]["resourceVersion"] == "10"
    assert server.asked[1]["allowWatchBookmarks"] == "true"
    assert set(server.tokens) == {"Bearer secret"}


def test_a_pod_that_ended_is_known_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "OVER_SECONDS", 120.0)
    now = [0.0]
    table = PodTable(lambda: now[0])
    items = [pod("a", "1", 1), pod("b", "2", 1)]
    table.replace(pods_of(items), "1")
    assert table.apply({"type": "DELETED", "object": pod("a", "1", 2)})
    assert {each.name for each in table.index().pods} == {"a", "b"}
    assert not table.apply({"type": "DELETED", "object": pod("a", "1", 3)})
    now[0] = 120.0
    assert {each.name for each in table.index().pods} == {"b"}


def test_a_watch_resumes_from_the_last_resource_version(server: Server, pods: ApiPods) -> None:
    pods.start(lambda: None)
    wait_until(lambda: len(server.asked) == 2)
    server.events.put(event("BOOKMARK", {"metadata": {"resourceVersion": "77"}}))
    server.events.put(None)
    wait_until(lambda: len(server.asked) == 3)
    assert server.asked[2]["resourceVersion"] == "77"
    assert "watch" in server.asked[2]


@pytest.mark.parametrize("gone", ["event", "answer"])
def test_an_expired_resource_version_causes_a_new_list(
    server: Server, pods: ApiPods, gone: str
) -> None:
    server.pods = [pod("a", "u1", 5)]
    pods.start(lambda: None)
    wait_until(lambda: names(pods) == {"a"})
    server.pods = [pod("b", "u2", 20)]
    if gone == "event":
        server.events.put(event("ERROR", {"kind": "Status", "code": 410, "message": "too old"}))
    else:
        server.refuse = 410
        asked = len(server.asked)
        server.events.put(None)
        wait_until(lambda: len(server.asked) > asked)
        server.refuse = 0
    server.events.put(None)
    wait_until(lambda: names(pods) == {"b"})


def test_an_unreachable_api_keeps_the_last_list_and_reports_an_error(
    server: Server, pods: ApiPods
) -> None:
    server.pods = [pod("a", "u1", 5)]
    pods.start(lambda: None)
    wait_until(lambda: names(pods) == {"a"})
    server.refuse = 503
    server.events.put(None)
    wait_until(lambda: "503 not today" in pods.health_error)
    assert names(pods) == {"a"}
    assert "the last list is kept" in pods.health_error
    server.refuse = 0
    wait_until(lambda: pods.health_error == "")


def test_an_invalid_event_does_not_end_the_watch(
    server: Server, pods: ApiPods, caplog: pytest.LogCaptureFixture
) -> None:
    server.pods = [pod("a", "u1", 5)]
    pods.start(lambda: None)
    wait_until(lambda: names(pods) == {"a"})
    server.events.put({"type": "ADDED", "object": None})
    wait_until(
        lambda: "is not a watch event" in caplog.text
    )  # ``health_error`` ends with the next list
    for _ in range(4):  # the watch that broke off still takes some
        server.events.put(event("ADDED", pod("b", "u2", 11)))
    wait_until(lambda: names(pods) == {"a", "b"})


def test_stopping_ends_an_idle_watch_immediately(server: Server, pods: ApiPods) -> None:
    pods.start(lambda: None)
    wait_until(lambda: len(server.asked) == 2)
    began = time.monotonic()
    pods.stop()
    assert time.monotonic() - began < 0.9
    assert pods.health_error == ""


def test_outside_a_cluster_the_error_is_explicit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(OSError, match="does not run in a pod"):
        ApiAccess.in_cluster()
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    assert ApiAccess.in_cluster().url == "https://[fd00::1]:443"
