"""The few Redis commands a collector sends, over one connection (RESP2, parsed by hiredis).

A full client costs more memory than all else of a collector: importing redis-py 8 takes 10 MB.
The protocol is https://redis.io/docs/latest/develop/reference/protocol-spec/; the URLs are the
ones redis-py and redis-cli take, as the analyzer is given the same.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hiredis import HiredisError, Reader, ReplyError, pack_command

from reveal_collector.kernel.memory_saving import READ_SIZE
from reveal_contract.redis_address import Address, explained, parse_url

if TYPE_CHECKING:
    import ssl

log = logging.getLogger(__name__)

_NAME = "reveal-collector"
Command = tuple[str | bytes | int, ...]


class RedisError(Exception):
    """Redis answered with an error, or with what is no answer; the text is its own."""


def handshake(address: Address) -> list[Command]:
    """What a connection begins with."""
    made: list[Command] = []
    if address.username:  # one without a password may be let in too (ACL, nopass)
        made.append(("AUTH", address.username, address.password))
    elif address.password:
        made.append(("AUTH", address.password))
    if address.database:
        made.append(("SELECT", address.database))
    return made


class RedisConnection:
    """One connection, made when it is first needed; after any failure it begins anew.

    Calls raise ``RedisError`` for what Redis refuses and ``OSError`` for what the network
    does; ``timeout`` is in seconds, for each wait on the socket.
    """

    def __init__(self, url: str, timeout: float) -> None:
        self._address = parse_url(url)
        self._timeout = timeout
        self._socket: socket.socket | None = None
        self._reader = Reader()

    def call(self, command: Command) -> Any:
        return self.pipeline([command])[0]

    def pipeline(self, commands: Sequence[Command]) -> list[Any]:
        """Send all, then read all answers; the first error among them is raised."""
        try:
            if self._socket is None:
                self._connect()
            return self._exchange(commands)
        except BaseException:
            self.close()  # answers may still be under way
            raise

    def transaction(self, commands: Sequence[Command]) -> list[Any]:
        """All of them or none (MULTI, EXEC)."""
        answers: list[Any] = self.pipeline([("MULTI",), *commands, ("EXEC",)])[-1]
        return self._without_errors(answers)

    def close(self) -> None:
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
            raise RedisError(f"what answers is no Redis: {error}") from None
        return answer

    def _without_errors(self, answers: list[Any]) -> list[Any]:
        for answer in answers:
            if isinstance(answer, ReplyError):
                raise RedisError(explained(str(answer), self._address.password))
        return answers

    def _connect(self) -> None:
        self._reader = Reader()
        self._socket = open_socket(self._address, self._timeout)
        self._exchange(handshake(self._address))
        try:
            self._exchange([("CLIENT", "SETNAME", _NAME)])
        except RedisError as error:  # a courtesy, which an ACL may leave out
            log.debug("no name for the connection: %s", error)


def _packed(command: Command) -> bytes:
    return bytes(pack_command(command))  # type: ignore[arg-type] # its stub means any length


def open_socket(address: Address, timeout: float) -> socket.socket:
    """A connected stream socket, under TLS where the address asks for it."""
    if address.socket:
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            made.settimeout(timeout)
            made.connect(address.socket)
        except BaseException:
            made.close()
            raise
        return made
    made = socket.create_connection((address.host, address.port), timeout)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if not address.tls:
        return made
    try:
        return tls_context(address).wrap_socket(made, server_hostname=address.host)
    except BaseException:
        made.close()
        raise


def tls_context(address: Address) -> ssl.SSLContext:
    """How the server proves itself: by the given or the host's authorities, unless told not to."""
    import ssl  # noqa: PLC0415 - 2 MB that only rediss:// needs

    try:
        context = ssl.create_default_context(cafile=address.ssl_ca_certs or None)
    except OSError as error:  # it does not say which file
        raise OSError(f"{address.ssl_ca_certs}: {error.strerror or error}") from None
    if address.ssl_cert_reqs == "none":
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if address.ssl_certfile:
        context.load_cert_chain(Path(address.ssl_certfile), address.ssl_keyfile or None)
    return context
