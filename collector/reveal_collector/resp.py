"""The few Redis commands a collector sends, over one connection (RESP2, parsed by hiredis).

A full client costs more memory than all else of a collector: importing redis-py 8 takes 10 MB.
The protocol is https://redis.io/docs/latest/develop/reference/protocol-spec/; the URLs are the
ones redis-py and redis-cli take, as the analyzer is given the same.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from hiredis import HiredisError, Reader, ReplyError, pack_command

from reveal_collector.frugal import READ_SIZE
from reveal_contract.settings import SettingsError

if TYPE_CHECKING:
    import ssl

PORT = 6379
_NAME = "reveal-collector"
Command = tuple[str | bytes | int, ...]
# what redis-py calls them too; for the others, host defaults are right
_TLS_FILES = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
_TLS_CHECKS = ("required", "none")


class RedisError(Exception):
    """Redis answered with an error, or with what is no answer; the text is its own."""


@dataclass(frozen=True)
class Address:
    """Where a Redis is and how to be let in; ``socket`` wins over host and port."""

    host: str = ""
    port: int = PORT
    socket: str = ""
    username: str = ""
    password: str = ""
    database: int = 0
    tls: bool = False
    ssl_ca_certs: str = ""
    ssl_certfile: str = ""
    ssl_keyfile: str = ""
    ssl_cert_reqs: str = "required"

    def greeting(self) -> list[Command]:
        """What a connection begins with."""
        made: list[Command] = []
        if self.password:
            made.append(("AUTH", *([self.username] if self.username else []), self.password))
        if self.database:
            made.append(("SELECT", self.database))
        return made


def parse_url(url: str) -> Address:
    """A redis://, rediss:// or unix:// URL; raises ``SettingsError``, never showing a password."""
    try:
        parts = urlsplit(url)
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        place = _place(parts, unquote(parts.path))
        database = query.pop("db", "" if place.socket else parts.path.strip("/")) or "0"
        if not database.isdecimal():
            raise ValueError("the database is a number")
        secrets = {
            name: query.pop(name, unquote(in_url or ""))
            for name, in_url in (("username", parts.username), ("password", parts.password))
        }
        return _with_tls(place, query, {**secrets, "database": int(database)})
    except ValueError as error:
        raise SettingsError(f"redisUrl: {error}") from None


def _place(parts: SplitResult, path: str) -> Address:
    if parts.scheme == "unix":
        if not path:
            raise ValueError("unix:// needs the path of a socket")
        return Address(socket=path)
    if parts.scheme not in ("redis", "rediss"):
        raise ValueError("must begin with redis://, rediss:// or unix://")
    try:
        port = parts.port or PORT
    except ValueError:  # its text may show a part of a password that holds a # or /
        raise ValueError("port is no number; escape what is special in a password") from None
    return Address(host=parts.hostname or "localhost", port=port, tls=parts.scheme == "rediss")


def _with_tls(place: Address, query: dict[str, str], given: dict[str, Any]) -> Address:
    files: dict[str, Any] = {name: query.pop(name) for name in _TLS_FILES if name in query}
    checks = query.pop("ssl_cert_reqs", "required")
    if checks not in _TLS_CHECKS:
        raise ValueError(f"ssl_cert_reqs is one of {', '.join(_TLS_CHECKS)}")
    if query:
        raise ValueError(f"no such option: {', '.join(sorted(query))}")
    return replace(place, ssl_cert_reqs=checks, **given, **files)


class RedisLink:
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
        return _without_errors(answers)

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _exchange(self, commands: Sequence[Command]) -> list[Any]:
        assert self._socket is not None
        self._socket.sendall(b"".join([_packed(command) for command in commands]))
        return _without_errors([self._answer() for _ in commands])

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

    def _connect(self) -> None:
        self._reader = Reader()
        self._socket = open_socket(self._address, self._timeout)
        self._exchange([*self._address.greeting(), ("CLIENT", "SETNAME", _NAME)])


def _packed(command: Command) -> bytes:
    return bytes(pack_command(command))  # type: ignore[arg-type] # its stub means any length


def _without_errors(answers: list[Any]) -> list[Any]:
    for answer in answers:
        if isinstance(answer, ReplyError):
            raise RedisError(str(answer))
    return answers


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

    context = ssl.create_default_context(cafile=address.ssl_ca_certs or None)
    if address.ssl_cert_reqs == "none":
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if address.ssl_certfile:
        context.load_cert_chain(Path(address.ssl_certfile), address.ssl_keyfile or None)
    return context
