"""The connections of a collector to a Redis Cluster: one to each server that has a key of its node.

A node has its keys in two slots, so these are two connections at most.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from reveal_collector.shipping.resp import (
    REPLACED_SECONDS,
    Command,
    RedirectedError,
    RedisConnection,
    RedisError,
    ask,
)
from reveal_contract.redis_address import RedisAddress, parse_url
from reveal_contract.redis_cluster import MOST_REDIRECTIONS, ClusterMap, key_slot

_Send = Callable[[RedisConnection, Sequence[Command]], list[Any]]


class Connection(Protocol):
    """What a collector needs of Redis; raises ``RedisError`` and ``OSError``."""

    def call(self, command: Command) -> Any:
        """Send a command and return its reply."""

    def transaction(self, commands: Sequence[Command]) -> list[Any]:
        """Run all commands or none; their keys are in the same slot."""

    def close(self) -> None:
        """Close; harmless if it is closed."""


def connection_to(url: str, timeout: float) -> Connection:
    """Return the connection for a URL; nothing is sent yet.  Raises ``AddressError``."""
    address = parse_url(url)
    if address.is_of_cluster:
        return ClusterConnection(address, timeout)
    return RedisConnection(address, timeout)


class ClusterConnection:
    """Sends commands to the primary of their slot, and follows it when that moves.

    A slot that moves is never split: what one transaction writes has keys of one slot.
    ``timeout`` is in seconds, as for a ``RedisConnection``.
    """

    def __init__(self, address: RedisAddress, timeout: float) -> None:
        self._timeout = timeout
        self._map = ClusterMap(address, ask, (RedisError, OSError), min(timeout, REPLACED_SECONDS))
        self._connections: dict[RedisAddress, RedisConnection] = {}

    def call(self, command: Command) -> Any:
        """Send a command and return its reply."""
        return self._routed([command], RedisConnection.pipeline)[0]

    def transaction(self, commands: Sequence[Command]) -> list[Any]:
        """Run all commands or none; their keys are in the same slot."""
        return self._routed(commands, RedisConnection.transaction)

    def close(self) -> None:
        """Close all connections, and ask for the servers again before the next command."""
        while self._connections:
            self._connections.popitem()[1].close()
        self._map.forget()

    def _routed(self, commands: Sequence[Command], send: _Send) -> list[Any]:
        server = self._map.server(key_slot(str(commands[0][1])))
        for _ in range(MOST_REDIRECTIONS):
            try:
                return send(self._connection(server), commands)
            except RedirectedError as error:
                if error.to.is_temporary:
                    send = RedisConnection.redirected
                else:  # it may have the other slot still, and is connected again then
                    self._connections.pop(server).close()
                server = self._map.redirected(server, error.to)
                last = error
        raise last

    def _connection(self, server: RedisAddress) -> RedisConnection:
        if server not in self._connections:
            self._connections[server] = RedisConnection(server, self._timeout)
        return self._connections[server]
