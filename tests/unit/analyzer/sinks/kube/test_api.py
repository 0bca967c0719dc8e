"""The Kubernetes API client on a real connection: its requests, and how it maps errors."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from reveal_analyzer.sinks.kube import api as module
from reveal_analyzer.sinks.kube.api import KubernetesApi, connect
from reveal_contract.kube.errors import (
    AlreadyExistsError,
    ForbiddenError,
    InvalidObjectError,
    NotFoundError,
    UnavailableError,
    error_of,
)
from reveal_contract.settings import SettingsError


class Server(ThreadingHTTPServer):
    """Answers ``answers`` in turn (status, body, headers), and remembers what was asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: list[tuple[int, Any, dict[str, str]]] = []
        self.asked: list[dict[str, Any]] = []


class Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def _answer(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(length)
        self.server.asked.append({
            "method": self.command, "path": self.path, "kind": self.headers["Content-Type"],
            "body": json.loads(body) if body else None, "agent": self.headers["User-Agent"],
            "authorization": self.headers["Authorization"],
        })  # fmt: skip
        status, answer, headers = self.server.answers.pop(0)
        data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        for key, value in {**headers, "Content-Length": str(len(data))}.items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PATCH = _answer

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as result:
        threading.Thread(target=result.serve_forever, daemon=True).start()
        yield result
        result.shutdown()


@pytest.fixture
def api(server: Server, tmp_path: Path) -> Iterator[KubernetesApi]:
    client = connect(kubeconfig(tmp_path, f"http://127.0.0.1:{server.server_port}"))
    yield client
    client.close()


def kubeconfig(folder: Path, url: str) -> Path:
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {"token": "secret"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    }))  # fmt: skip
    return path


def status(code: int, reason: str, **details: str) -> dict[str, Any]:
    result: dict[str, Any] = {"kind": "Status", "code": code, "reason": reason, "message": "why"}
    return {**result, "details": details} if details else result


def test_what_is_asked(api: KubernetesApi, server: Server) -> None:
    server.answers = [(200, {"metadata": {"uid": "u"}}, {})] * 8
    api.create_report({"metadata": {"name": "r"}})
    api.apply_report_status("r", {"status": {}})
    api.label_report("r", {"a": "b"})
    api.create_event("ns", {"reason": "x"})
    api.patch_event("ns", "e", {"series": {}})
    api.patch_node_conditions("n", [{"type": "T"}])
    api.apply_profile_status("p", {"telemetry": {}})
    assert api.node("n/../x")["metadata"]["uid"] == "u"
    reports = "/apis/reveal.dev/v1alpha1/anomalyreports"
    manager = "fieldManager=reveal-analyzer"
    merge = "application/merge-patch+json"
    apply = "application/apply-patch+yaml"
    assert [(each["method"], each["path"], each["kind"]) for each in server.asked] == [
        ("POST", f"{reports}?{manager}", "application/json"),
        ("PATCH", f"{reports}/r/status?{manager}&force=true", apply),
        ("PATCH", f"{reports}/r?{manager}", merge),
        ("POST", f"/apis/events.k8s.io/v1/namespaces/ns/events?{manager}", "application/json"),
        ("PATCH", f"/apis/events.k8s.io/v1/namespaces/ns/events/e?{manager}", merge),
        ("PATCH", f"/api/v1/nodes/n/status?{manager}", "application/strategic-merge-patch+json"),
        ("PATCH", f"/apis/reveal.dev/v1alpha1/revealprofiles/p/status?{manager}&force=true", apply),
        ("GET", "/api/v1/nodes/n%2F..%2Fx", None),
    ]
    assert server.asked[6]["body"] == {
        "apiVersion": "reveal.dev/v1alpha1", "kind": "RevealProfile", "metadata": {"name": "p"},
        "status": {"telemetry": {}},
    }  # fmt: skip
    assert {each["authorization"] for each in server.asked} == {"Bearer secret"}
    assert server.asked[0]["agent"].startswith("reveal-analyzer/")


def test_lists_come_page_by_page(api: KubernetesApi, server: Server) -> None:
    server.answers = [
        (200, {"items": [{"n": 1}, {"n": 2}], "metadata": {"continue": "more="}}, {}),
        (200, {"items": [{"n": 3}], "metadata": {}}, {}),
    ]
    assert [each["n"] for each in api.open_reports("p")] == [1, 2, 3]
    first, second = (each["path"] for each in server.asked)
    assert "labelSelector=reveal.dev/profile%3Dp%2Creveal.dev/state%3DOpen" in first
    assert "limit=500" in first and "continue" not in first
    assert "continue=more%3D" in second


@pytest.mark.parametrize(
    ("code", "body", "kind"),
    [
        (404, status(404, "NotFound", name="r"), NotFoundError),
        (404, status(404, "NotFound"), ForbiddenError),
        (404, b"404 page not found\n", ForbiddenError),
        (409, status(409, "AlreadyExists", name="r"), AlreadyExistsError),
        (409, status(409, "Conflict", name="r"), UnavailableError),
        (403, status(403, "Forbidden", name="r"), ForbiddenError),
        (401, status(401, "Unauthorized"), ForbiddenError),
        (422, status(422, "Invalid", name="r"), InvalidObjectError),
        (400, status(400, "BadRequest"), InvalidObjectError),
        (413, b"too large", InvalidObjectError),
        (429, status(429, "TooManyRequests"), UnavailableError),
        (500, status(500, "InternalError"), UnavailableError),
        (503, b"\xff\xfe not json", UnavailableError),
        (504, b"", UnavailableError),
        (301, b"", UnavailableError),
    ],
)
def test_an_error_status_maps_to_an_exception(
    api: KubernetesApi, server: Server, code: int, body: Any, kind: type[Exception]
) -> None:
    server.answers = [(code, body, {})]
    with pytest.raises(kind) as caught:
        api.create_report({"metadata": {"name": "r"}})
    assert type(caught.value) is kind
    assert str(code) in str(caught.value)
    assert "POST /apis/reveal.dev/v1alpha1/anomalyreports" in str(caught.value)
    assert len(server.asked) == 1  # the client library does not retry by itself


def test_how_long_to_leave_it_alone() -> None:
    asked = error_of("GET /x", 429, b"{}", retry_after="7")
    assert isinstance(asked, UnavailableError) and asked.retry_after_s == 7
    dated = error_of("GET /x", 503, b"{}", retry_after="Wed, 21 Oct 2026 07:28:00 GMT")
    assert isinstance(dated, UnavailableError) and dated.retry_after_s == 0


def test_nobody_there_and_no_answer_are_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Server() as silent:
        monkeypatch.setattr(module, "READ_SECONDS", 0.1)
        api = connect(kubeconfig(tmp_path, f"http://127.0.0.1:{silent.server_port}"))
        with pytest.raises(UnavailableError, match=r"timed out|Timeout"):
            api.node("n")
        port = silent.server_port
    gone = connect(kubeconfig(tmp_path, f"http://127.0.0.1:{port}"))
    with pytest.raises(UnavailableError, match="GET /api/v1/nodes/n: "):
        gone.node("n")


def test_an_answer_that_is_no_json_is_away(api: KubernetesApi, server: Server) -> None:
    server.answers = [(200, b"<html>a proxy's page</html>", {}), (200, b"[]", {})]
    for _ in range(2):
        with pytest.raises(UnavailableError):
            api.profile("p")


def test_no_way_to_the_api_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(SettingsError, match="not in a pod of a cluster; give --kubeconfig"):
        connect()
    with pytest.raises(SettingsError, match="nowhere"):
        connect(tmp_path / "nowhere")
    (tmp_path / "bad").write_text("{")
    with pytest.raises(SettingsError, match="bad"):
        connect(tmp_path / "bad")
