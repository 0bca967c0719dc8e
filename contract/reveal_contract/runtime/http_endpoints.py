"""HTTP endpoints of the processes: /metrics for Prometheus, /healthz, /readyz."""

from __future__ import annotations

import io
import logging
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from socketserver import TCPServer, ThreadingMixIn
from typing import TYPE_CHECKING, Any, ClassVar
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import GaugeMetricFamily

from reveal_contract import VERSION

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

    from reveal_contract.runtime.http_access import HttpAccess

log = logging.getLogger(__name__)

# returns "" while all is well, else a sentence
Check = Callable[[], str]

_CLIENT_SECONDS = 10.0  # for a request with its handshake, then for each part of the response
_CLIENT_CLOSES_SECONDS = 5.0
_MOST_CONNECTIONS = 32  # of one client address
_MOST_OF_ALL = 256  # of all addresses: each connection has a thread
# The last of these are for addresses that have hardly any other.  Probes come from an address that
# depends on the network, so it does not distinguish them from other clients; but the kubelet has
# two connections at most.  A pod has one address: to fill these takes dozens of pods.
_KEPT_FOR_FEW, _FEW = 64, 2
# in the environment of a request: whether TLS verified a certificate of the client; no header can
# have this name
_HAS_CERTIFICATE = "reveal.has_client_certificate"


def serve(
    registry: CollectorRegistry | None,
    port: int,
    health: Check | None = None,
    ready: Check | None = None,
    access_folder: str = "",
) -> int:
    """Serve ``port`` (0: any free one) from threads until the process ends; return the port.

    /metrics is a scrape of ``registry``; /healthz and /readyz respond with 200, or with 503 and the
    reason (Kubernetes: "Configure Liveness, Readiness and Startup Probes").  It listens on IPv6 and
    IPv4 where the host has them.  With a folder for ``HttpAccess`` it serves HTTPS, and the metrics
    only to those who may read them.  Raises ``OSError`` with a sentence where the port is in use or
    the folder cannot be used.
    """
    asked = {"/healthz": health, "/readyz": ready}
    checks = {path: check for path, check in asked.items() if check is not None}
    access = _access_of(access_folder)
    try:
        server = _listening(port, application(registry, checks, access))
    except OSError as error:
        raise OSError(error.errno, f"port {port} for metrics: {error.strerror}") from None
    server.access = access
    return _start(server)


def _access_of(folder: str) -> HttpAccess | None:
    if not folder:
        return None
    from reveal_contract.runtime.http_access import HttpAccess  # noqa: PLC0415 - ssl takes memory

    return HttpAccess(Path(folder))


def serve_locally(port: int, app: WSGIApplication) -> int:
    """Serve an application on 127.0.0.1 only, as ``serve`` does; return the port.

    In a pod this is what ``kubectl port-forward`` reaches, and other pods do not.
    """
    try:
        server = make_server(
            "127.0.0.1", port, app, server_class=_LocalServer, handler_class=_Handler
        )
    except OSError as error:
        raise OSError(error.errno, f"port {port} of 127.0.0.1: {error.strerror}") from None
    return _start(server)


def application(
    registry: CollectorRegistry | None,
    checks: Mapping[str, Check],
    access: HttpAccess | None = None,
) -> WSGIApplication:
    """Return the application: /metrics, if there is a registry, and the checks by their paths."""
    pages = {"/metrics": _metrics(registry, access)} if registry is not None else {}
    pages |= {path: _answer(check) for path, check in checks.items()}

    def answer(environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        page = pages.get(environ.get("PATH_INFO", ""))
        if page is not None:
            return page(environ, start)
        return text_response(start, "404 Not Found", f"not found; try {', '.join(pages)}")

    return answer


def _metrics(registry: CollectorRegistry, access: HttpAccess | None) -> WSGIApplication:
    """Return the page of the metrics, for those who may read them."""
    metrics: WSGIApplication = make_wsgi_app(registry)

    def answer(environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        if access is not None:
            authorization = environ.get("HTTP_AUTHORIZATION", "")
            if refused := access.refusal(authorization, environ[_HAS_CERTIFICATE]):
                return text_response(start, refused.status, refused.sentence, *refused.headers)
        return metrics(environ, start)

    return answer


def _answer(check: Check) -> WSGIApplication:
    """Return the page of a check."""

    def answer(environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        problem = check()
        status = "503 Service Unavailable" if problem else "200 OK"
        return text_response(start, status, problem or "ok")

    return answer


def _start(server: WSGIServer) -> int:
    threading.Thread(target=server.serve_forever, name="reveal-http", daemon=True).start()
    return int(server.server_port)


def text_response(
    start: StartResponse, status: str, text: str, *headers: tuple[str, str]
) -> list[bytes]:
    """Begin a response of plain text and return its body."""
    body = f"{text}\n".encode()
    content = [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", f"{len(body)}")]
    start(status, [*content, *headers])
    return [body]


class _RequestBytes(io.RawIOBase):
    """The bytes of a request until a monotonic time, after which a client counts as silent."""

    def __init__(self, connection: Any, ends_s: float) -> None:
        self._connection, self._ends_s = connection, ends_s

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Wait for bytes no longer than what is left of the time; raises ``TimeoutError``."""
        left_s, limit_s = self._ends_s - time.monotonic(), self._connection.gettimeout()
        if left_s <= 0:
            raise TimeoutError
        self._connection.settimeout(left_s)
        try:
            received: int = self._connection.recv_into(buffer)
        finally:
            self._connection.settimeout(limit_s)  # of the response
        return received


class _Handler(WSGIRequestHandler):
    timeout: ClassVar[float] = _CLIENT_SECONDS

    def setup(self) -> None:
        """Limit the time of the whole request: single bytes, or a handshake, do not prolong it."""
        ends_s = time.monotonic() + self.timeout
        if handshake := getattr(self.request, "do_handshake", None):  # only with TLS
            self.request.settimeout(self.timeout)
            handshake()  # in the thread of the client: others do not wait for it
        super().setup()
        self.rfile.close()
        self.rfile = io.BufferedReader(_RequestBytes(self.connection, ends_s))

    def get_environ(self) -> WSGIEnvironment:
        """Return the environment of the request, with what the handshake verified."""
        environ = super().get_environ()
        certificate = getattr(self.connection, "getpeercert", None)  # only with TLS
        verified = certificate is not None and certificate(binary_form=True) is not None
        return {**environ, _HAS_CERTIFICATE: verified}

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: there is a scrape or a probe every few seconds."""


class _Connections:
    """The open connections of each client address, whose number is limited."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: Counter[str] = Counter()

    def add(self, address: str) -> bool:
        """Count a connection; return False if the client, or all together, have too many."""
        with self._lock:
            if self._open[address] >= self._most():
                return False
            self._open[address] += 1
            return True

    def remove(self, address: str) -> None:
        """Count the end of a connection."""
        with self._lock:
            self._open[address] -= 1
            if not self._open[address]:
                del self._open[address]

    def _most(self) -> int:
        """Return how many connections an address may have now."""
        left = _MOST_OF_ALL - self._open.total()
        if left > _KEPT_FOR_FEW:
            return _MOST_CONNECTIONS
        return _FEW if left > 0 else 0


class _Server(ThreadingMixIn, WSGIServer):
    """Listens on IPv6 and IPv4 where the host has IPv6 (RFC 3493, 5.3), else on IPv4.

    A client that opens many connections gets no more of them, and all together have a limit: each
    has a thread, and probes of others must be answered.
    """

    daemon_threads = True
    address_family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET
    access: HttpAccess | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._connections = _Connections()
        super().__init__(*args, **kwargs)

    def get_request(self) -> tuple[Any, Any]:
        connection, address = super().get_request()
        if self.access is not None:
            connection = self.access.secured(connection)
        return connection, address

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._connections.add(client_address[0]):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:  # there is no thread for it
            self._connections.remove(client_address[0])
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._connections.remove(client_address[0])

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log a defect; a client that is silent, or goes away, is none."""
        if not isinstance(sys.exception(), OSError):
            log.exception("a request of %s failed", client_address[0])

    def server_bind(self) -> None:
        if self.address_family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        # not HTTPServer's: it resolves the host's name, which may take long
        TCPServer.server_bind(self)
        self.server_name, self.server_port = socket.gethostname(), self.server_address[1]
        self.setup_environ()


class _LocalServer(_Server):
    """Listens on 127.0.0.1, and lets its clients close first.

    Where a port is forwarded, what was not read yet may be lost when the server closes.
    """

    address_family = socket.AF_INET

    def finish_request(self, request: Any, client_address: Any) -> None:
        super().finish_request(request, client_address)
        with suppress(OSError):
            request.settimeout(_CLIENT_CLOSES_SECONDS)
            request.recv(1)


def _listening(port: int, app: WSGIApplication) -> _Server:
    return make_server("", port, app, server_class=_Server, handler_class=_Handler)


def build_info(name: str) -> GaugeMetricFamily:
    """Return the metric ``NAME{version="1.2.3"} 1``."""
    family = GaugeMetricFamily(name, "1, with the version.", labels=["version"])
    family.add_metric([VERSION], 1)
    return family
