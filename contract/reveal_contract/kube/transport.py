"""HTTP transport to the Kubernetes API: the only module that imports ``kubernetes``.

Of that package only credentials, TLS and the renewal of tokens are used.  Objects are plain dicts:
its models would cost memory, and would drop fields that they do not know.
"""

from __future__ import annotations

import json
import os
import re
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import yaml
from kubernetes import config
from kubernetes.client.api_client import ApiClient
from kubernetes.client.configuration import Configuration
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from reveal_contract.kube.errors import (
    NO_RESPONSE,
    UNAUTHORIZED,
    ApiError,
    ForbiddenError,
    UnavailableError,
    error_of,
)
from reveal_contract.kube.paths import JSON

PAGE = 500  # objects of a list in one response
_CHUNK = 1 << 16  # bytes read at a time from a watch

Object = dict[str, Any]
Query = Iterable[tuple[str, str]]


class ServerClock:
    """The clock of a server, by the header ``Date`` of its latest response.

    Until there was one it is the clock of this host.
    """

    def __init__(
        self,
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._now, self._monotonic = now, monotonic
        self._latest: tuple[float, float] | None = None  # its time, and that of our own counter

    def update(self, header: str) -> None:
        """Take the header of a response; one that is no time changes nothing."""
        with suppress(ValueError):
            self._latest = parsedate_to_datetime(header).timestamp(), self._monotonic()

    def now(self) -> float:
        """Return its time in epoch seconds, right to a second."""
        if self._latest is None:
            return self._now()
        server_s, then_s = self._latest
        return server_s + self._monotonic() - then_s


class NoAccessError(Exception):
    """There is no way to an API server: no usable kubeconfig, and no pod of a cluster."""


@dataclass(frozen=True)
class Access:
    """What another client needs to be the same user on the same server."""

    server: str
    ca_path: str | None
    insecure: bool
    scheme: str | None
    token: str | None
    certificate_path: str | None
    key_path: str | None


def connect(
    kubeconfig: Path | None,
    user_agent: str,
    *,
    connect_s: float,
    read_s: float,
    connections: int = 1,
) -> Transport:
    """Return a transport by a kubeconfig file, without one as a pod of the cluster.

    ``connections`` is how many are kept open, one for each thread that sends requests.  Nothing
    is sent yet.  Raises ``NoAccessError``.
    """
    configuration = _configuration(connections)
    try:
        if kubeconfig is None:
            config.load_incluster_config(configuration)  # type: ignore[no-untyped-call]
        else:
            config.load_kube_config(  # type: ignore[no-untyped-call]
                config_file=str(kubeconfig),
                client_configuration=configuration,
                persist_config=False,
            )
    except Exception as error:  # files, YAML and login plugins raise errors of any class
        source = kubeconfig or "not in a pod of a cluster; give --kubeconfig FILE"
        raise NoAccessError(f"no access to the Kubernetes API: {source}: {error}") from None
    return Transport(configuration, user_agent, connect_s, read_s)


def connect_user(
    kubeconfig: str, context: str | None, user_agent: str, *, connect_s: float, read_s: float
) -> Transport:
    """Return a transport with the rights of a user, as kubectl has them.

    ``kubeconfig`` are paths with a colon between two.  ``context`` is the name of one in them, None
    for the current one.  Nothing is sent yet.  Raises ``NoAccessError``.
    """
    configuration = _configuration(1)
    try:
        config.load_kube_config(  # type: ignore[no-untyped-call]
            config_file=kubeconfig,
            context=context or _current_context(kubeconfig),
            client_configuration=configuration,
            persist_config=False,
        )
    except Exception as error:  # files, YAML and login plugins raise errors of any class
        raise NoAccessError(str(error)) from None
    return Transport(configuration, user_agent, connect_s, read_s)


def contexts_of(kubeconfig: str) -> tuple[str, ...]:
    """Return the names of the contexts of a kubeconfig.  Raises ``NoAccessError``."""
    try:
        found, _ = config.list_kube_config_contexts(kubeconfig)  # type: ignore[no-untyped-call]
    except Exception as error:  # files and YAML raise errors of any class
        raise NoAccessError(str(error)) from None
    return tuple(str(each["name"]) for each in found)


def _current_context(kubeconfig: str) -> str | None:
    """Return the current context of the first file that has one, as kubectl does.

    The client package takes that of the last file.
    """
    for path in filter(os.path.isfile, map(os.path.expanduser, kubeconfig.split(os.pathsep))):
        with open(path) as file:
            if current := (yaml.safe_load(file) or {}).get("current-context"):
                return str(current)
    return None


def _configuration(connections: int) -> Configuration:
    result = Configuration()
    result.connection_pool_maxsize = connections
    result.retries = False  # the caller knows what may be repeated, and when
    return result


class Transport:
    """Requests to one API server; every method may be called from any thread.

    All block, at most for the timeouts, and raise ``ApiError``.
    """

    def __init__(
        self, configuration: Configuration, user_agent: str, connect_s: float, read_s: float
    ) -> None:
        self._configuration = configuration
        self._timeouts = connect_s, read_s
        self._client = ApiClient(configuration)
        self._client.user_agent = user_agent
        self._clock = ServerClock()

    def access(self) -> Access:
        """Return the credentials as they are now: tokens of pods are renewed."""
        settings = self._configuration
        header: str = settings.get_api_key_with_prefix("BearerToken") or ""
        scheme, _, token = header.rpartition(" ")
        return Access(
            server=settings.host,
            ca_path=settings.ssl_ca_cert,
            insecure=not settings.verify_ssl,
            scheme=scheme.capitalize() or None,
            token=token or None,
            certificate_path=settings.cert_file,
            key_path=settings.key_file,
        )

    @property
    def server(self) -> str:
        """The address of the server."""
        return str(self._configuration.host)

    def now(self) -> float:
        """Return the time of the server's clock, in epoch seconds; see ``ServerClock``."""
        return self._clock.now()

    def request(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        query: Query = (),
        content: str = JSON,
        accept: str = JSON,
    ) -> Object:
        """Send one request and return the object in the response."""
        response = self._send(method, path, body, query, content, accept)
        request = f"{method} {path}"
        try:
            found = json.loads(response.read())
        except (HTTPError, OSError) as error:
            raise _no_response(request, error) from None
        except ValueError:
            found = None
        if not isinstance(found, dict):  # a proxy in between answered with a page of its own
            raise UnavailableError("the response is not a JSON object", request=request)
        return found

    def pages(self, path: str, *, query: Query = (), accept: str = JSON) -> Iterator[Object]:
        """Yield a list in pages of ``PAGE`` objects."""
        token = ""
        while True:
            more = [("continue", token)] if token else []
            whole = [("limit", str(PAGE)), *query, *more]
            page = self.request("GET", path, query=whole, accept=accept)
            yield page
            token = page.get("metadata", {}).get("continue") or ""
            if not token:
                return

    def events(self, path: str, query: Query, silence_s: float) -> Iterator[Object]:
        """Yield the watch events of a list until the server ends the watch.

        A connection without any event for ``silence_s`` is dead.
        """
        request = f"watch {path}"
        response = self._send("GET", path, None, query, JSON, JSON, silence_s).response
        try:
            for line in lines(response.stream(_CHUNK)):
                event = json.loads(line)
                if event["type"] == "ERROR":
                    status = event["object"]
                    code = status.get("code", NO_RESPONSE)
                    raise error_of(request, code, json.dumps(status).encode())
                yield event
        except (HTTPError, OSError, ValueError) as error:
            raise _no_response(request, error) from None
        finally:
            response.close()

    @contextmanager
    def forwarded(self, path: str, port: int) -> Iterator[socket.socket]:
        """Connect to a port of a pod, ``path`` is its subresource ``portforward``.

        What the pod refuses ends the stream without data.
        """
        from kubernetes.stream import ws_client  # noqa: PLC0415 - for a few users of this class

        request = f"forward port {port} of {path}"
        try:
            _, url, headers, *_ = self._client.param_serialize(
                "GET", path, query_params=[("ports", str(port))], header_params={},
                auth_settings=["BearerToken"],
            )  # fmt: skip
            lower = {name.lower(): value for name, value in (headers or {}).items()}
            call: Any = ws_client.portforward_call  # has no types
            forward = call(self._configuration, "GET", url, headers=lower)
        except (ApiException, OSError) as error:
            raise _refused(request, str(getattr(error, "reason", "") or error)) from None
        except config.ConfigException as error:  # the file of the token, when it is renewed
            raise ForbiddenError(str(error), UNAUTHORIZED, request=request) from None
        try:
            connection: socket.socket = forward.socket(port)
            connection.settimeout(self._timeouts[1])
            yield connection
        finally:
            forward.close()

    def close(self) -> None:
        """Close the connections."""
        self._client.close()  # type: ignore[no-untyped-call]

    def _send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        query: Query,
        content: str,
        accept: str,
        read_s: float | None = None,
    ) -> Any:
        """Return the successful response, its body unread."""
        request = f"{method} {path}"
        headers = {"Accept": accept, **({"Content-Type": content} if body is not None else {})}
        connect_s, default_read_s = self._timeouts
        try:
            parameters = self._client.param_serialize(
                method,
                path,
                query_params=list(query),
                header_params=headers,
                body=body,
                auth_settings=["BearerToken"],
            )
            response = self._client.call_api(
                *parameters, _request_timeout=(connect_s, read_s or default_read_s)
            )
            self._clock.update(response.headers.get("Date", ""))
            if 200 <= response.status <= 299:
                return response
            data: bytes = response.read()  # type: ignore[no-untyped-call]
        except (HTTPError, ApiException, OSError) as error:
            raise _no_response(request, error) from None
        except config.ConfigException as error:  # the file of the token, when it is renewed
            raise ForbiddenError(str(error), UNAUTHORIZED, request=request) from None
        after = response.headers.get("Retry-After", "")
        raise error_of(request, response.status, data, response.reason or "", after)


def lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines of a stream that arrives in chunks; empty ones are left out."""
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        yield from (line for line in whole if line)


def _refused(request: str, text: str) -> ApiError:
    """Return the error of a WebSocket that was not opened, by the status in its text."""
    status = re.search(r"Handshake status (\d{3})", text)
    if status is None:
        return UnavailableError(text.splitlines()[0][:300] if text else "", request=request)
    return error_of(request, int(status[1]), b"", text[:300])


def _no_response(request: str, error: Exception) -> ApiError:
    text = str(error).splitlines()[0] if str(error) else ""
    return UnavailableError(f"{type(error).__name__}: {text}"[:300], request=request)
