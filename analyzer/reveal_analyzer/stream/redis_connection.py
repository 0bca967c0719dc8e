"""The analyzer's connection to Redis: its state, the reason of an outage, the next attempt.

While Redis is unavailable, ``reader.StreamReader.poll`` waits for the next attempt, after which it
renews its leases at once, and ``sinks.kube.observation`` resolves nothing.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from reveal_analyzer.stream.cluster_client import ClusterClient
from reveal_analyzer.stream.primary_connection import (
    CONNECT_SECONDS,
    TcpConnection,
    TlsConnection,
    through_sentinels,
)
from reveal_analyzer.stream.tolerant_client import TolerantClient, degradations
from reveal_analyzer.telemetry.degraded import Degradation
from reveal_contract.redis_address import (
    IS_OF_CLUSTER,
    TLS_FILES,
    RedisAddress,
    explained,
    parse_url,
)
from reveal_contract.runtime.backoff import HALF_JITTER, Backoff

log = logging.getLogger(__name__)

SOCKET_SECONDS = 2.0  # longer than any command takes; nothing here blocks in the server
FIRST_PAUSE = 0.1
LONGEST_PAUSE = 5.0

# exceptions of an outage: the socket fails, or the server responds that it cannot serve
OUTAGE = (redis.RedisError, OSError)
_OF_CLUSTER = (
    redis.exceptions.AskError,
    redis.exceptions.ClusterError,
    redis.exceptions.ClusterCrossSlotError,
)


def connect(url: str) -> TolerantClient:
    """Return a client that neither retries by itself nor decodes; nothing is sent yet.

    With Sentinels, each of its connections first asks them for the primary.  In a Redis Cluster,
    each command goes to the server that has its key.

    RESP2 is pinned because redis-py shapes stream replies differently for RESP3, and its own
    retries are off because a repeated XREADGROUP would skip what the lost reply held.  Raises
    ``AddressError``.
    """
    address = parse_url(url)
    if address.is_of_cluster:
        return ClusterClient(address, _client, _ask)
    return _client(address)


def _client(address: RedisAddress) -> TolerantClient:
    pool = redis.ConnectionPool(**_location(address), **_options(address))
    client = TolerantClient(connection_pool=pool)
    client.auto_close_connection_pool = True
    return client


def _options(address: RedisAddress) -> dict[str, Any]:
    return {
        "db": address.database,
        "username": address.username or None,
        "password": address.password or None,
        "protocol": 2,
        "decode_responses": False,
        "socket_timeout": SOCKET_SECONDS,
        "socket_connect_timeout": CONNECT_SECONDS,
        "retry": Retry(NoBackoff(), 0),
    }


def _location(address: RedisAddress) -> dict[str, Any]:
    """Return where to connect, and the class of redis-py that does."""
    if address.socket:
        return {
            "connection_class": redis.UnixDomainSocketConnection,
            "path": address.socket,
        }
    if address.sentinels is not None:
        return through_sentinels(address, _ask) | _tls(address)
    location: dict[str, Any] = {"host": address.host, "port": address.port}
    kind = TlsConnection if address.tls else TcpConnection
    return {"connection_class": kind, **location, **_tls(address)}


def _tls(address: RedisAddress) -> dict[str, Any]:
    if not address.tls:
        return {}
    return {
        "ssl_cert_reqs": address.ssl_cert_reqs,
        "ssl_ca_certs": address.ssl_ca_certs or None,
        "ssl_certfile": address.ssl_certfile or None,
        "ssl_keyfile": address.ssl_keyfile or None,
    }


def _ask(server: RedisAddress, command: tuple[str, ...], timeout: float) -> Any:
    """Send a command to one server; ``timeout`` is in seconds, for each wait."""
    times = {"socket_timeout": timeout, "socket_connect_timeout": timeout}
    pool = redis.ConnectionPool(**_location(server), **(_options(server) | times))
    with redis.Redis.from_pool(pool) as client:
        return client.execute_command(*command)


class RedisConnection:
    """Whether Redis responds.

    ``since`` is when ``connected`` last changed, in seconds since the epoch.  ``reason`` says why
    it is disconnected, ``outages`` counts how often it became so.
    """

    def __init__(self, client: TolerantClient) -> None:
        self.client = client
        self.connected = False
        self.since = time.time()
        self.reason = "not connected yet"
        self.outages = 0
        self._backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE, HALF_JITTER)
        self._retry_s = 0.0

    def due(self) -> bool:
        """Whether to send commands now; false during the pause after a failure."""
        return time.monotonic() >= self._retry_s

    def succeeded(self) -> None:
        """Note a response."""
        self._backoff.reset()
        if not self.connected:
            log.info("Redis is connected")
            self.connected, self.since, self.reason = True, time.time(), ""

    def failed(self, error: Exception) -> None:
        """Note a failure; the next attempt is due after a pause that doubles up to 5 s."""
        self._retry_s = time.monotonic() + self._backoff.next()
        self.client.disconnect()  # a late reply may still arrive on a connection
        reason = f"{type(error).__name__}: {self._sentence(error)}"
        if self.connected or self._backoff.failures == 1:
            log.warning("Redis is unavailable, will retry: %s", reason)
        if self.connected:
            self.outages += 1
            self.since = time.time()
        self.connected, self.reason = False, reason

    def degradations(self) -> list[Degradation]:
        """Return what in Redis cannot be used, for the telemetry."""
        return degradations(self.client.foreign_keys())

    def _sentence(self, error: Exception) -> str:
        if isinstance(error, _OF_CLUSTER) and not isinstance(self.client, ClusterClient):
            return IS_OF_CLUSTER
        given = self.client.connection_pool.connection_kwargs
        password = str(given.get("password") or "")
        return _unreadable(given) or explained(str(error), RedisAddress(password=password))


def _unreadable(given: Mapping[str, Any]) -> str:
    """Return which TLS file cannot be read, and why: redis-py only says that one is missing."""
    for file in filter(None, map(given.get, TLS_FILES)):
        try:
            Path(file).read_bytes()
        except OSError as error:
            return f"{file}: {error.strerror}"
    return ""
