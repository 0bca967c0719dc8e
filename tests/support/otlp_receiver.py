"""A receiver of OTLP over HTTP that keeps what it gets and responds as it is set."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


@dataclass
class OtlpRequest:
    """One request as it arrived."""

    path: str
    headers: Message
    body: bytes


@dataclass
class OtlpReceiver:
    """What arrived, and the status that the next requests get."""

    url: str = ""
    status: int = 200
    location: str = ""
    requests: list[OtlpRequest] = field(default_factory=list)


@pytest.fixture
def receiver() -> Iterator[OtlpReceiver]:
    found = OtlpReceiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            found.requests.append(OtlpRequest(self.path, self.headers, body))
            self.send_response(found.status)
            if found.location:
                self.send_header("Location", found.location)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        found.url = f"http://127.0.0.1:{server.server_port}"
        yield found
        server.shutdown()
