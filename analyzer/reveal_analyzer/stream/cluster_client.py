"""A client of redis-py for a Redis Cluster that behaves as that for one server.

The class of redis-py for clusters connects when it is made, repeats commands by itself, of which an
XREADGROUP would skip what a lost reply held, and takes no script in a pipeline.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

import redis
from redis.exceptions import AskError, MovedError

from reveal_analyzer.stream.primary_connection import SEARCH_SECONDS
from reveal_analyzer.stream.tolerant_client import Arguments, TolerantClient, key_of, raised
from reveal_contract.redis_address import RedisAddress
from reveal_contract.redis_cluster import (
    MOST_REDIRECTIONS,
    ClusterMap,
    NoClusterError,
    Redirection,
    key_slot,
)
from reveal_contract.redis_search import Ask


class _Command(NamedTuple):
    """A command of a pipeline; ``is_asking`` while its slot moves to the server."""

    arguments: Arguments
    options: dict[str, Any]
    server: RedisAddress
    is_asking: bool = False


class ClusterClient(TolerantClient):
    """Sends each command to the primary of the slot of its key; nothing is sent when it is made.

    Errors are those of a client for one server.  A command without a key goes to any server.  A
    pipeline sends what is for one server together, and is never atomic.
    """

    def __init__(
        self, address: RedisAddress, make: Callable[[RedisAddress], TolerantClient], ask: Ask
    ) -> None:
        seed = make(address.of_seeds()[0])
        super().__init__(connection_pool=seed.connection_pool)
        self._make = make
        self._map = ClusterMap(address, ask, (redis.RedisError, OSError), SEARCH_SECONDS)
        self._clients: dict[RedisAddress, TolerantClient] = {}
        self._lock = threading.Lock()

    def execute_command(self, *arguments: Any, **options: Any) -> Any:
        """Send a command and return its reply."""
        return raised(self.execute_all([(arguments, options)]))[0]

    def pipeline(  # type: ignore[override] # which has a client for one server
        self, transaction: bool = True, shard_hint: Any = None
    ) -> ClusterPipeline:
        """Return a pipeline, which sends what is for one server together."""
        return ClusterPipeline(self)

    def execute_all(self, stack: Sequence[tuple[Arguments, dict[str, Any]]]) -> list[Any]:
        """Send commands and return their replies, errors among them."""
        replies: list[Any] = [None] * len(stack)
        left = {
            index: _Command(arguments, options, self._server(arguments))
            for index, (arguments, options) in enumerate(stack)
        }
        for _ in range(MOST_REDIRECTIONS):
            redirected: dict[int, _Command] = {}
            for server, indices in _by_server(left).items():
                found = self._sent(server, [left[index] for index in indices])
                for index, reply in zip(indices, found, strict=True):
                    replies[index] = reply
                    if another := self._redirected(left[index], reply):
                        redirected[index] = another
            if not (left := redirected):
                break
        return replies

    def foreign_keys(self) -> list[str]:
        """Return the keys of another type that were met lately."""
        with self._lock:
            clients = list(self._clients.values())
        return [key for client in clients for key in client.foreign_keys()]

    def servers(self) -> list[TolerantClient]:
        """Return a client for each primary."""
        try:
            return [self._client(server) for server in self._map.primaries()]
        except NoClusterError as error:
            raise redis.ConnectionError(str(error)) from None

    def scan_iter(self, *arguments: Any, **options: Any) -> Iterator[Any]:
        """Yield the keys of all servers."""
        for server in self.servers():
            yield from server.scan_iter(*arguments, **options)

    def disconnect(self) -> None:
        """Close all connections, and ask for the servers again before the next command."""
        with self._lock:
            clients = list(self._clients.values())
            self._clients.clear()
        for client in clients:
            client.disconnect()
        self._map.forget()

    def close(self) -> None:
        """Close all connections."""
        self.disconnect()

    def _server(self, arguments: Arguments) -> RedisAddress:
        """Return who has the key of a command; raises ``redis.ConnectionError``."""
        key = key_of(arguments)
        try:
            return self._map.server(key_slot(key) if key is not None else 0)
        except NoClusterError as error:
            raise redis.ConnectionError(str(error)) from None

    def _sent(self, server: RedisAddress, commands: Sequence[_Command]) -> list[Any]:
        """Send commands to one server and return their replies, errors among them."""
        with self._client(server).pipeline(transaction=False) as pipe:
            for each in commands:
                if each.is_asking:
                    pipe.execute_command("ASKING")  # type: ignore[no-untyped-call]
                pipe.execute_command(*each.arguments, **each.options)  # type: ignore[no-untyped-call]
            replies = iter(pipe.execute(raise_on_error=False))
        return [_last(replies, 1 + each.is_asking) for each in commands]

    def _redirected(self, command: _Command, reply: object) -> _Command | None:
        """Return the command for another server, if the reply says so."""
        if not isinstance(reply, AskError):  # of which MovedError is one
            return None
        is_asking = not isinstance(reply, MovedError)
        to = Redirection(is_asking, int(reply.slot_id), reply.host, int(reply.port))
        server = self._map.redirected(command.server, to)
        return command._replace(server=server, is_asking=is_asking)

    def _client(self, server: RedisAddress) -> TolerantClient:
        with self._lock:
            if server not in self._clients:
                self._clients[server] = self._make(server)
            return self._clients[server]


class ClusterPipeline(redis.client.Pipeline):
    """Collects commands, and sends what is for one server together."""

    def __init__(self, client: ClusterClient) -> None:
        super().__init__(client.connection_pool, client.response_callbacks, False, None)
        self._client = client

    def execute(self, raise_on_error: bool = True) -> list[Any]:
        """Send the commands and return their replies; raises the first error if asked to."""
        stack = [(arguments, options) for arguments, options in self.command_stack]
        try:
            replies = self._client.execute_all(stack) if stack else []
        finally:
            self.reset()
        return raised(replies) if raise_on_error else replies


def servers_of(client: redis.Redis) -> Sequence[redis.Redis]:
    """Return a client for each server that has keys."""
    return client.servers() if isinstance(client, ClusterClient) else [client]


def _by_server(commands: dict[int, _Command]) -> dict[RedisAddress, list[int]]:
    found = defaultdict(list)
    for index, command in commands.items():
        found[command.server].append(index)
    return found


def _last(replies: Iterator[Any], count: int) -> Any:
    """Take so many replies and return the last one."""
    return list(islice(replies, count))[-1]
