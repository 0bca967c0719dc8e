"""The few Redis commands of a collector, over one connection (RESP2, parsed by hiredis).

A full client needs more memory than all other parts of a collector: redis-py 8 takes 10 MB.  The
protocol is https://redis.io/docs/latest/develop/reference/protocol-spec/.  The URLs are those of
redis-py and redis-cli, as the analyzer takes the same ones.  With Sentinels, each connection first
asks them for the primary.  ``redis_cluster`` has the connections to a Redis Cluster.
"""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hiredis import HiredisError, Reader, ReplyError, pack_command

from reveal_collector.kernel_interfaces.memory_saving import READ_SIZE
from reveal_contract.redis_address import RedisAddress, explained, parse_url
from reveal_contract.redis_cluster import Redirection, redirection
from reveal_contract.redis_sentinel import ROLE_COMMAND, PrimarySearch, not_primary

if TYPE_CHECKING:
    import ssl

log = logging.getLogger(__name__)

_NAME = "reveal-collector"
# A primary that hung and was replaced meanwhile still acknowledges what it is sent, until it is a
# replica: a reply that took longer counts as none, and the new primary gets the same again.
REPLACED_SECONDS = 1.0
Command = tuple[str | bytes | int, ...]


class RedisError(Exception):
    """Redis replied with an error, or the reply is invalid; the text is that of the reply."""


class RedirectedError(RedisError):
    """Another server of the Redis Cluster has the keys; nothing was written."""

    def __init__(self, text: str, to: Redirection) -> None:
        super().__init__(text)
        self.to = to


def handshake(address: RedisAddress) -> list[Command]:
    """Return the commands at the start of a connection."""
    commands: list[Command] = []
    if address.username:  # an ACL user may need no password (nopass)
        commands.append(("AUTH", address.username, address.password))
    elif address.password:
        commands.append(("AUTH", address.password))
    if address.database:
        commands.append(("SELECT", address.database))
    return commands


class RedisConnection:
    """One connection, opened when it is first needed and reopened after an error.

    Calls raise ``RedisError`` for errors of Redis and ``OSError`` for errors of the network.
    ``timeout`` is in seconds, for each wait on the socket and for the search of a primary.  Where
    servers replace each other, no wait on the socket is longer than ``REPLACED_SECONDS``.
    """

    def __init__(self, address: str | RedisAddress, timeout: float) -> None:
        self._address = parse_url(address) if isinstance(address, str) else address
        self._primaries: PrimarySearch | None = None
        self._timeout = self._search_s = timeout
        if self._address.sentinels is not None:
            self._primaries = PrimarySearch(self._address, ask, (RedisError, OSError))
        if self._primaries is not None or self._address.is_of_cluster:
            self._timeout = min(timeout, REPLACED_SECONDS)
        self._socket: socket.socket | None = None
        self._reader = Reader()

    def call(self, command: Command) -> Any:
        """Send a command and return its reply."""
        return self.pipeline([command])[0]

    def pipeline(self, commands: Sequence[Command]) -> list[Any]:
        """Send all commands, then read all replies; raise the first error among them."""
        try:
            if self._socket is None:
                self._connect()
            return self._exchange(commands)
        except BaseException:
            self.close()  # replies may still arrive: the connection cannot be reused
            raise

    def transaction(self, commands: Sequence[Command]) -> list[Any]:
        """Run all commands or none (MULTI, EXEC)."""
        return self._all_or_none([], commands)

    def redirected(self, commands: Sequence[Command]) -> list[Any]:
        """Run all commands or none on the server to which a slot is about to move."""
        return self._all_or_none([("ASKING",)], commands)

    def _all_or_none(self, before: Sequence[Command], commands: Sequence[Command]) -> list[Any]:
        answers: list[Any] = self.pipeline([*before, ("MULTI",), *commands, ("EXEC",)])[-1]
        return self._without_errors(answers)

    def close(self) -> None:
        """Close the connection; harmless if it is closed."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _exchange(self, commands: Sequence[Command]) -> list[Any]:
        assert self._socket is not None
        self._socket.sendall(b"".join([_packed(command) for command in commands]))
        return self._without_errors([self._answer() for _ in commands])

    def _answer(self) -> Any:
        assert self._socket is not None
        try:
            while (answer := self._reader.gets()) is False:
                data = self._socket.recv(READ_SIZE)
                if not data:
                    raise ConnectionError("Redis closed the connection")
                self._reader.feed(data)
        except HiredisError as error:
            raise RedisError(f"the reply is not from Redis: {error}") from None
        return answer

    def _without_errors(self, answers: list[Any]) -> list[Any]:
        for answer in answers:
            if isinstance(answer, ReplyError):
                text = explained(str(answer), self._address)
                to = redirection(str(answer)) if self._address.is_of_cluster else None
                raise RedirectedError(text, to) if to else RedisError(text)
        return answers

    def _connect(self) -> None:
        self._reader = Reader()
        address = self._address
        if self._primaries is not None:
            address = self._primaries.find(self._search_s)
        self._socket = open_socket(address, self._timeout)
        began = time.monotonic()
        self._exchange(handshake(address))
        if self._primaries is not None:
            self._check_primary(self._primaries, address, began)
        try:
            self._exchange([("CLIENT", "SETNAME", _NAME)])
        except RedisError as error:  # the name is informative, and an ACL may forbid it
            log.debug("the connection has no name: %s", error)

    def _check_primary(self, primaries: PrimarySearch, address: RedisAddress, began: float) -> None:
        """Raise ``RedisError`` if the server is no primary, or hung and was replaced."""
        hello = self._exchange([ROLE_COMMAND])[0]
        if not primaries.is_current(address, hello, time.monotonic() - began, self._search_s):
            raise RedisError(not_primary(address, primaries.service))


def ask(server: RedisAddress, command: Command, timeout: float) -> Any:
    """Send a command over a connection of its own; ``timeout`` is in seconds, for each wait."""
    connection = RedisConnection(server, timeout)
    try:
        return connection.call(command)
    finally:
        connection.close()


def _packed(command: Command) -> bytes:
    return bytes(pack_command(command))  # type: ignore[arg-type] # its stub describes tuples of one element


def open_socket(address: RedisAddress, timeout: float) -> socket.socket:
    """Return a connected stream socket, with TLS where the address requests it."""
    if address.socket:
        commands = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            commands.settimeout(timeout)
            commands.connect(address.socket)
        except BaseException:
            commands.close()
            raise
        return commands
    commands = socket.create_connection((address.host, address.port), timeout)
    commands.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    commands.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if not address.tls:
        return commands
    try:
        return tls_context(address).wrap_socket(commands, server_hostname=address.host)
    except BaseException:
        commands.close()
        raise


def tls_context(address: RedisAddress) -> ssl.SSLContext:
    """Return how to verify the server: by the given CAs or the host's, unless disabled."""
    import ssl  # noqa: PLC0415 - 2 MB that only rediss:// needs

    try:
        context = ssl.create_default_context(cafile=address.ssl_ca_certs or None)
    except OSError as error:  # the error does not name the file
        raise OSError(f"{address.ssl_ca_certs}: {error.strerror or error}") from None
    if address.ssl_cert_reqs == "none":
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if address.ssl_certfile:
        context.load_cert_chain(Path(address.ssl_certfile), address.ssl_keyfile or None)
    return context
