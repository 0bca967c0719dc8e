"""Connections of redis-py to the primary, which another server may become.

The classes of redis-py for Sentinels ask for the state of all services, with no limit of time in
all, and do not check what they connect to.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import redis

from reveal_contract.redis_address import RedisAddress
from reveal_contract.redis_search import Ask
from reveal_contract.redis_sentinel import (
    ROLE_COMMAND,
    NoPrimaryError,
    PrimarySearch,
    not_primary,
)

if TYPE_CHECKING:
    import socket

SEARCH_SECONDS = 0.75  # to ask the Sentinels, or who has the slots of a cluster
CONNECT_SECONDS = 1.0  # with that
LEAST_SECONDS = 0.25  # to connect, when the Sentinels took all of it

_ERRORS = (redis.RedisError, OSError)
# replies of a server that is not the primary, or not yet
_NOT_PRIMARY = (
    redis.exceptions.ReadOnlyError,
    redis.exceptions.BusyLoadingError,
    redis.exceptions.MasterDownError,
)
_READONLY_IN_SCRIPT = "-READONLY "  # before Redis 7 the reply of a script has another code


class TcpConnection(redis.Connection):
    """Is closed by the reply that its server is no primary, so that the next one may reach it.

    That reply is an error of the connection then.  Behind the name of a managed service, or
    behind Sentinels, the next connection leads to the new primary.
    """

    def read_response(self, *arguments: Any, **options: Any) -> Any:
        """Return a reply; raises what redis-py raises."""
        try:
            return super().read_response(*arguments, **options)
        except redis.RedisError as error:
            if not _is_of_no_primary(error):
                raise
            self.disconnect()  # type: ignore[no-untyped-call]
            raise redis.ConnectionError(f"not the primary: {error}") from None


class TlsConnection(TcpConnection, redis.SSLConnection):
    """The same with TLS."""


class SentinelConnection(TcpConnection):
    """Asks the Sentinels whenever it connects."""

    def __init__(self, *, primaries: PrimarySearch, **options: Any) -> None:
        self._primaries = primaries
        super().__init__(**options, redis_connect_func=_introduce)  # type: ignore[no-untyped-call]

    def _connect(self) -> socket.socket:
        began = time.monotonic()
        try:
            primary = self._primaries.find(SEARCH_SECONDS)
        except NoPrimaryError as error:
            raise redis.ConnectionError(str(error)) from None
        self.host, self.port = primary.host, primary.port
        left = CONNECT_SECONDS - (time.monotonic() - began)
        self.socket_connect_timeout = max(LEAST_SECONDS, left)
        connected: socket.socket = super()._connect()  # type: ignore[no-untyped-call]
        return connected

    def check_role(self, began: float) -> None:
        """Raise ``redis.ConnectionError`` if the server is no primary, or hung and was replaced.

        ``began`` is when its greeting began, on the monotonic clock.
        """
        self.send_command(*ROLE_COMMAND)  # type: ignore[no-untyped-call]
        hello = self.read_response()
        address = RedisAddress(self.host, int(self.port))
        greeting_s = time.monotonic() - began
        try:
            is_current = self._primaries.is_current(address, hello, greeting_s, SEARCH_SECONDS)
        except NoPrimaryError as error:
            raise redis.ConnectionError(str(error)) from None
        if not is_current:
            raise redis.ConnectionError(not_primary(address, self._primaries.service))


class SentinelTlsConnection(SentinelConnection, TlsConnection):
    """The same with TLS."""


def through_sentinels(address: RedisAddress, ask: Ask) -> dict[str, Any]:
    """Return the options of a pool whose connections ask the Sentinels of the address."""
    kind = SentinelTlsConnection if address.tls else SentinelConnection
    return {"connection_class": kind, "primaries": PrimarySearch(address, ask, _ERRORS)}


def _introduce(connection: SentinelConnection) -> None:
    began = time.monotonic()
    connection.on_connect()  # type: ignore[no-untyped-call]
    connection.check_role(began)


def _is_of_no_primary(error: redis.RedisError) -> bool:
    return isinstance(error, _NOT_PRIMARY) or _READONLY_IN_SCRIPT in str(error)
