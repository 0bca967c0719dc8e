"""Pods of this node from the Kubernetes API: one list, then watches.

The protocol is "Efficient detection of changes" of the Kubernetes API concepts.  It uses
``http.client``: the models of the official client would need more memory than the collector.
"""

from __future__ import annotations

import http.client
import json
import logging
import os
import random
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from reveal_collector.subjects.pods.list_stream import ListStream
from reveal_collector.subjects.pods.podlist import Pod, PodIndex, pod_of
from reveal_contract.settings import CollectorSettings

log = logging.getLogger(__name__)

WATCH_SECONDS = 300  # the server ends a watch after this time; then the next one starts
_CONNECT_TIMEOUT_S = 10.0
_READ_TIMEOUT_S = WATCH_SECONDS + 30.0
MIN_RETRY_S, MAX_RETRY_S = 0.5, 30.0
# Pods that are over have no cgroups.  Nobody limits how many there are: the kubelet rejects those
# that somebody binds to a node, and they stay as objects of up to a megabyte.
_NOT_OVER = ("status.phase!=Failed", "status.phase!=Succeeded")
OVER_SECONDS = 120.0
_MOST_OVER = 256
# 110 pods of 1.5 MB; an object that is cut by chunks is scanned again, so they are large
_MAX_LIST_BYTES, _CHUNK_BYTES = 256 << 20, 512 << 10
_MAX_LINE_BYTES = 8 << 20
_GONE = 410
_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class WatchExpiredError(Exception):
    """The server no longer keeps the version that a watch should start at: list again."""


class PodApiError(OSError):
    """The API refused a request or ended it; the text says why."""


@dataclass(frozen=True)
class ApiAccess:
    """Address and credentials of the API; the token on disk expires, so each request reads it."""

    url: str
    authority: Path | None = None
    token: Path | None = None

    @classmethod
    def in_cluster(cls) -> ApiAccess:
        """Return the access that a pod has (Kubernetes: "Accessing the API from a Pod")."""
        host = os.environ.get("KUBERNETES_SERVICE_HOST", "")
        port = os.environ.get("KUBERNETES_SERVICE_PORT", "443")
        if not host:
            raise PodApiError(
                "KUBERNETES_SERVICE_HOST is not set: this process does not run in a pod"
            )
        host = f"[{host}]" if ":" in host else host
        folder = _SERVICE_ACCOUNT
        return cls(f"https://{host}:{port}", folder / "ca.crt", folder / "token")

    def connect(self) -> http.client.HTTPConnection:
        parts = urlsplit(self.url)
        if parts.scheme != "https":
            return http.client.HTTPConnection(parts.netloc, timeout=_CONNECT_TIMEOUT_S)
        context = ssl.create_default_context(cafile=str(self.authority) if self.authority else None)
        return http.client.HTTPSConnection(
            parts.netloc, timeout=_CONNECT_TIMEOUT_S, context=context
        )

    def headers(self) -> dict[str, str]:
        headers = {"Accept": "application/json", "User-Agent": "reveal-collector"}
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token.read_text().strip()}"
        return headers


def access_of(settings: CollectorSettings) -> ApiAccess:
    """Return the access that the settings define, by default that of a pod."""
    if not settings.pod_api:
        return ApiAccess.in_cluster()
    authority, token = (
        Path(file) if file else None for file in (settings.pod_ca_file, settings.pod_token_file)
    )
    return ApiAccess(settings.pod_api, authority, token)


class PodTable:
    """The pods after a list and its watch events; the next watch starts at ``version``.

    A pod leaves the watch when it ends, before its cgroups and the findings about it are gone.  It
    stays known until the first change after ``OVER_SECONDS``.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.version = ""
        self._pods: dict[str, Pod] = {}
        self._over: dict[str, tuple[Pod, float]] = {}  # uid -> pod, and when it ended
        self._clock = clock

    def replace(self, pods: Iterable[Pod], version: str) -> None:
        self._pods = {pod.uid: pod for pod in pods}
        self.version = version

    def apply(self, event: Mapping[str, Any]) -> bool:
        """Apply one watch event; return whether the pods changed.

        Raises ``WatchExpiredError``.
        """
        kind, item = event.get("type"), event.get("object")
        if not isinstance(item, Mapping):
            raise PodApiError(f"watch: {ascii(event)[:200]} is not a watch event")
        if kind == "ERROR":
            if item.get("code") == _GONE:
                raise WatchExpiredError
            raise PodApiError(f"watch: {item.get('message') or item.get('reason')}")
        self.version = _version(item) or self.version
        pod = pod_of(item)
        if kind == "BOOKMARK" or pod is None:
            return False
        if kind == "DELETED":
            return self._remove(pod.uid)
        known = self._pods.get(pod.uid)
        self._pods[pod.uid] = pod
        return known != pod

    def index(self) -> PodIndex:
        oldest = self._clock() - OVER_SECONDS
        self._over = {uid: each for uid, each in self._over.items() if each[1] > oldest}
        return PodIndex([*self._pods.values(), *(pod for pod, _ in self._over.values())])

    def _remove(self, uid: str) -> bool:
        """Let a pod be over; return whether it was known."""
        pod = self._pods.pop(uid, None)
        if pod is None:
            return False
        self._over[uid] = pod, self._clock()
        while len(self._over) > _MOST_OVER:
            del self._over[next(iter(self._over))]
        return True


class ApiPods:
    """Follows the pods with ``spec.nodeName`` of this node in a thread.

    While the API does not answer, the last list stays and ``health_error`` says so.
    """

    def __init__(self, access: Callable[[], ApiAccess], node: str) -> None:
        self.health_error, self.is_listed = "", False
        self._access, self._node = access, node
        self._table, self._index = PodTable(), PodIndex()
        self._changed: Callable[[], None] = _ignore
        self._connection: http.client.HTTPConnection | None = None
        # A connection drops its socket when the response is the last one: keep it to shut it down.
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
            _shut_down(self._socket)
        if self._thread is not None:
            self._thread.join(1.0)
            self._thread = None

    def _run(self) -> None:
        wait = MIN_RETRY_S
        while not self._stopping.is_set():
            try:
                self._watch()
                wait = MIN_RETRY_S
            except WatchExpiredError:
                self._table.version = ""  # list again
            except (OSError, http.client.HTTPException, ValueError, RecursionError) as cause:
                self._fail(cause)
                # Jitter, as all nodes of a cluster lose the same API server at the same time.
                self._stopping.wait(wait * random.uniform(0.5, 1.0))  # noqa: S311 - no secret
                wait = min(2 * wait, MAX_RETRY_S)

    def _watch(self) -> None:
        """List the pods if none are known, then run one watch until it ends."""
        if not self._table.version:
            self._list()
        parameters = {
            "watch": "1", "allowWatchBookmarks": "true", "resourceVersion": self._table.version,
            "timeoutSeconds": str(int(WATCH_SECONDS * random.uniform(0.8, 1.0))),  # noqa: S311
        }  # fmt: skip
        response = self._get(parameters)
        try:
            self._clear_error()
            for event in _events(response):
                if self._table.apply(event):
                    self._publish()
        finally:
            response.close()  # the response holds the socket if it is the last of a connection
            self._close()

    def _list(self) -> None:
        # Version 0 reads from the server's cache: lists of all nodes would load etcd.
        response = self._get({"resourceVersion": "0"})
        stream = ListStream(_chunks(response))
        try:
            pods = [pod for item in stream if (pod := pod_of(item)) is not None]
        finally:
            response.close()
            self._close()
        if not isinstance(stream.rest, dict) or not isinstance(stream.rest.get("items"), list):
            raise PodApiError("the answer is no list of pods: it has no items")
        self._table.replace(pods, _version(stream.rest))
        self._clear_error()
        self._publish()

    def _get(self, parameters: Mapping[str, str]) -> http.client.HTTPResponse:
        access = self._access()
        selector = ",".join((f"spec.nodeName={self._node}", *_NOT_OVER))
        query = urlencode({"fieldSelector": selector, **parameters})
        self._connection = connection = access.connect()
        try:
            connection.request("GET", f"/api/v1/pods?{query}", headers=access.headers())
            self._socket = connection.sock
            self._socket.settimeout(_READ_TIMEOUT_S)
            response = connection.getresponse()
            if response.status == _GONE:
                raise WatchExpiredError
            if response.status != http.client.OK:
                raise PodApiError(_refusal(response))
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
        self.is_listed = True
        self._changed()

    def _clear_error(self) -> None:
        if self.health_error:
            log.info("the Kubernetes API answers again")
        self.health_error = ""

    def _fail(self, cause: Exception) -> None:
        if self._stopping.is_set():
            return
        reason = str(cause) or type(cause).__name__
        error = f"pods: the Kubernetes API does not answer, the last list is kept: {reason}"
        if error != self.health_error:
            log.warning("%s", error)
        self.health_error = error


def _chunks(response: http.client.HTTPResponse) -> Iterator[bytes]:
    left = _MAX_LIST_BYTES
    while chunk := response.read(_CHUNK_BYTES):
        left -= len(chunk)
        if left < 0:
            raise PodApiError(f"the list of pods has more than {_MAX_LIST_BYTES >> 20} MiB")
        yield chunk


def _events(response: http.client.HTTPResponse) -> Iterator[Mapping[str, Any]]:
    while line := response.readline(_MAX_LINE_BYTES):
        event = json.loads(line)
        if not isinstance(event, dict):
            raise PodApiError("watch: a line is not a JSON object")
        yield event


def _version(item: Mapping[str, Any]) -> str:
    meta = item.get("metadata")
    version = meta.get("resourceVersion") if isinstance(meta, Mapping) else None
    return version if isinstance(version, str) else ""


def _refusal(response: http.client.HTTPResponse) -> str:
    """Return the message of a Status object, else the status line."""
    try:
        message = json.loads(response.read(4096)).get("message")
    except (ValueError, AttributeError):
        message = None
    return f"{response.status} {message or response.reason}"


def _shut_down(connection: socket.socket) -> None:
    """Wake a thread that waits for the next line."""
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return


def _ignore() -> None:
    """Do nothing: nobody listens yet."""
