"""Pods of this node from the Kubernetes API: list, then watch, for ever.

Protocol: "Efficient detection of changes" of the Kubernetes API concepts.  Plain HTTP of the
standard library: the official client's models would weigh more than the whole collector.
"""

from __future__ import annotations

import http.client
import json
import logging
import os
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from reveal_collector.subjects.pods.podlist import Pod, PodIndex, pod_of, pods_of
from reveal_contract.runtime.backoff import HALF_JITTER, Backoff, spread
from reveal_contract.settings import CollectorSettings

log = logging.getLogger(__name__)

WATCH_SECONDS = 300.0  # the server ends a watch after this, and it is begun anew
_WATCH_JITTER = (0.8, 1.0)  # the watches of all nodes do not end together
_CONNECT_SECONDS = 10.0
_SILENCE_SECONDS = WATCH_SECONDS + 30.0
FIRST_WAIT, LAST_WAIT = 0.5, 30.0
_LARGEST = 64 << 20
_LINE = 8 << 20
_GONE = 410
_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class GoneError(Exception):
    """The version a watch should begin at is no longer kept: list again."""


class ApiError(OSError):
    """The API refused or broke off; the text says what."""


@dataclass(frozen=True)
class Access:
    """How to reach the API; the token is read for each request, as it is renewed on disk."""

    url: str
    authority: Path | None = None
    token: Path | None = None

    @classmethod
    def in_cluster(cls) -> Access:
        """What the kubelet gives every pod (Kubernetes: "Accessing the API from a Pod")."""
        host = os.environ.get("KUBERNETES_SERVICE_HOST", "")
        port = os.environ.get("KUBERNETES_SERVICE_PORT", "443")
        if not host:
            raise ApiError("KUBERNETES_SERVICE_HOST is not set: this is no pod of a cluster")
        host = f"[{host}]" if ":" in host else host
        folder = _SERVICE_ACCOUNT
        return cls(f"https://{host}:{port}", folder / "ca.crt", folder / "token")

    def connect(self) -> http.client.HTTPConnection:
        parts = urlsplit(self.url)
        if parts.scheme != "https":
            return http.client.HTTPConnection(parts.netloc, timeout=_CONNECT_SECONDS)
        context = ssl.create_default_context(cafile=str(self.authority) if self.authority else None)
        return http.client.HTTPSConnection(parts.netloc, timeout=_CONNECT_SECONDS, context=context)

    def headers(self) -> dict[str, str]:
        made = {"Accept": "application/json", "User-Agent": "reveal-collector"}
        if self.token is not None:
            made["Authorization"] = f"Bearer {self.token.read_text().strip()}"
        return made


def access_of(settings: CollectorSettings) -> Access:
    """How to reach the API: as the settings say, else as every pod does."""
    if not settings.pod_api:
        return Access.in_cluster()
    authority, token = (
        Path(file) if file else None for file in (settings.pod_ca_file, settings.pod_token_file)
    )
    return Access(settings.pod_api, authority, token)


class PodTable:
    """The pods as list and watch events leave them; ``version`` is where to go on."""

    def __init__(self) -> None:
        self.version = ""
        self._pods: dict[str, Pod] = {}

    def replace(self, listed: Mapping[str, Any]) -> None:
        self._pods = {pod.uid: pod for pod in pods_of(listed)}
        self.version = _version(listed)

    def apply(self, event: Mapping[str, Any]) -> bool:
        """One watch event; whether the pods are others now.  Raises ``GoneError``."""
        kind, thing = event.get("type"), event.get("object")
        if not isinstance(thing, Mapping):
            raise ApiError(f"watch: {ascii(event)[:200]} is no event")
        if kind == "ERROR":
            if thing.get("code") == _GONE:
                raise GoneError
            raise ApiError(f"watch: {thing.get('message') or thing.get('reason')}")
        self.version = _version(thing) or self.version
        pod = pod_of(thing)
        if kind == "BOOKMARK" or pod is None:
            return False
        if kind == "DELETED":
            return self._pods.pop(pod.uid, None) is not None
        known = self._pods.get(pod.uid)
        self._pods[pod.uid] = pod
        return known != pod

    def index(self) -> PodIndex:
        return PodIndex(self._pods.values())


class ApiPods:
    """Follows the pods with ``spec.nodeName`` of this node in a thread.

    While the API is away the last list is kept and ``trouble`` says so.
    """

    def __init__(self, access: Callable[[], Access], node: str) -> None:
        self.health_error = ""
        self._access, self._node = access, node
        self._table, self._index = PodTable(), PodIndex()
        self._changed: Callable[[], None] = _nothing
        self._connection: http.client.HTTPConnection | None = None
        # the connection forgets its own where the answer is the last one on it
        self._socket: socket.socket | None = None
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def index(self) -> PodIndex:
        return self._index

    def start(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._stopping.clear()
        self._thread = threading.Thread(target=self._run, name="reveal-pods", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._socket is not None:
            _hang_up(self._socket)
        if self._thread is not None:
            self._thread.join(1.0)
            self._thread = None

    def _run(self) -> None:
        retry = Backoff(FIRST_WAIT, LAST_WAIT, HALF_JITTER)
        while not self._stopping.is_set():
            try:
                self._follow()
                retry.reset()
            except GoneError:
                self._table.version = ""
            except (OSError, http.client.HTTPException, ValueError, RecursionError) as error:
                self._fail(error)
                # jitter: all nodes of a cluster lose the same API server together
                self._stopping.wait(retry.next())

    def _follow(self) -> None:
        """A list where none is known, then one watch to its end."""
        if not self._table.version:
            self._list()
        parameters = {
            "watch": "1", "allowWatchBookmarks": "true", "resourceVersion": self._table.version,
            "timeoutSeconds": str(int(spread(WATCH_SECONDS, _WATCH_JITTER))),
        }  # fmt: skip
        response = self._get(parameters)
        try:
            self._works()
            for event in _events(response):
                if self._table.apply(event):
                    self._publish()
        finally:
            response.close()  # it may be the one that holds the socket
            self._close()

    def _list(self) -> None:
        # version 0: from the server's cache, which spares etcd the lists of a whole cluster
        response = self._get({"resourceVersion": "0"})
        try:
            listed = json.loads(response.read(_LARGEST))
        finally:
            response.close()
            self._close()
        if not isinstance(listed, dict):
            raise ApiError("the list of pods is no object")
        self._table.replace(listed)
        self._works()
        self._publish()

    def _get(self, parameters: Mapping[str, str]) -> http.client.HTTPResponse:
        access = self._access()
        query = urlencode({"fieldSelector": f"spec.nodeName={self._node}", **parameters})
        self._connection = connection = access.connect()
        try:
            connection.request("GET", f"/api/v1/pods?{query}", headers=access.headers())
            self._socket = connection.sock
            self._socket.settimeout(_SILENCE_SECONDS)
            response = connection.getresponse()
            if response.status == _GONE:
                raise GoneError
            if response.status != http.client.OK:
                raise ApiError(_refusal(response))
        except BaseException:
            self._close()
            raise
        return response

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = self._socket = None

    def _publish(self) -> None:
        self._index = self._table.index()
        self._changed()

    def _works(self) -> None:
        if self.health_error:
            log.info("the Kubernetes API answers again")
        self.health_error = ""

    def _fail(self, error: Exception) -> None:
        if self._stopping.is_set():
            return
        reason = str(error) or type(error).__name__
        health_error = f"pods: the Kubernetes API does not answer, the last list is kept: {reason}"
        if health_error != self.health_error:
            log.warning("%s", health_error)
        self.health_error = health_error


def _events(response: http.client.HTTPResponse) -> Iterator[Mapping[str, Any]]:
    while line := response.readline(_LINE):
        event = json.loads(line)
        if not isinstance(event, dict):
            raise ApiError("watch: a line is no object")
        yield event


def _version(thing: Mapping[str, Any]) -> str:
    meta = thing.get("metadata")
    version = meta.get("resourceVersion") if isinstance(meta, Mapping) else None
    return version if isinstance(version, str) else ""


def _refusal(response: http.client.HTTPResponse) -> str:
    """What a Status object says, else the bare answer."""
    try:
        message = json.loads(response.read(4096)).get("message")
    except (ValueError, AttributeError):
        message = None
    return f"{response.status} {message or response.reason}"


def _hang_up(connection: socket.socket) -> None:
    """Wake a thread that waits for the next line."""
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return


def _nothing() -> None:
    """Nobody listens yet."""
