"""Where a Redis is and who may in: one reading of its URL for collector and analyzer.

The forms are those of redis-py and redis-cli: ``redis://``, ``rediss://`` (TLS), ``unix://``.
``redis+sentinel://`` and ``rediss+sentinel://`` have the hosts of Sentinels and the name of the
service whose primary they know.  ``redis+cluster://`` and ``rediss+cluster://`` have the hosts of
some servers of a Redis Cluster.  No error, and no ``repr``, shows a password or a part of one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit

from reveal_contract.kube.names import (
    REDIS_PASSWORD_VARIABLE,
    REDIS_USERNAME_VARIABLE,
    SENTINEL_PASSWORD_VARIABLE,
    SENTINEL_USERNAME_VARIABLE,
)

PORT = 6379
SENTINEL_PORT = 26379
SENTINEL_SCHEMES = ("redis+sentinel://", "rediss+sentinel://")
CLUSTER_SCHEMES = ("redis+cluster://", "rediss+cluster://")
SCHEMES = ("redis://", "rediss://", "unix://", *SENTINEL_SCHEMES, *CLUSTER_SCHEMES)
TLS_SCHEMES = ("rediss://", "rediss+sentinel://", "rediss+cluster://")
_CLUSTER_FORM = "redis+cluster://HOST:6379,HOST:6379"
# what redis-py calls them too; for the others, host defaults are right
TLS_FILES = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
_TLS_CHECKS = ("required", "none")
_SERVICE = re.compile(r"[A-Za-z0-9._-]+")  # the names that a Sentinel takes
_SENTINEL_FORM = "redis+sentinel://HOST:26379,HOST:26379/SERVICE"
SINGLE_SERVER = (
    "is the address of one Redis; for several servers give those of Sentinels"
    f" ({_SENTINEL_FORM}) or of a Redis Cluster ({_CLUSTER_FORM})"
)
IS_OF_CLUSTER = (
    "this Redis is part of a Redis Cluster: give the addresses of some of its servers,"
    f" {_CLUSTER_FORM}, with rediss in place of redis for TLS"
)
_HOST = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^\[\]:\s%]+)(:(?P<port>[0-9]{1,5}))?")
_MOST_PORT = 65_535
# error replies of a server that is a part of a Redis Cluster
_OF_CLUSTER = ("MOVED ", "ASK ", "CLUSTERDOWN ", "CROSSSLOT ")
_HIDDEN = "***"


class AddressError(ValueError):
    """The text is not the address of one Redis; the message says why."""


@dataclass(frozen=True)
class Sentinels:
    """Where the Sentinels of a service listen, and who may ask them."""

    service: str
    hosts: tuple[tuple[str, int], ...]
    username: str = ""
    password: str = field(default="", repr=False)


@dataclass(frozen=True)
class RedisAddress:
    """Address and credentials of a Redis; ``socket`` overrides host and port.

    With ``sentinels``, host and port are those of the primary that they name.  With ``seeds``, they
    are those of the server of the Redis Cluster that has the key.  TLS is the same for all.
    """

    host: str = ""
    port: int = PORT
    socket: str = ""
    username: str = ""
    password: str = field(default="", repr=False)
    database: int = 0
    tls: bool = False
    ssl_ca_certs: str = ""
    ssl_certfile: str = ""
    ssl_keyfile: str = ""
    ssl_cert_reqs: str = "required"
    sentinels: Sentinels | None = None
    seeds: tuple[tuple[str, int], ...] = ()  # servers of a Redis Cluster, of which one must answer
    is_of_cluster: bool = False

    @property
    def name(self) -> str:
        """Host and port."""
        return f"{self.host}:{self.port}"

    def with_server(self, host: str, port: int) -> RedisAddress:
        """Return the address of a server that Sentinels or servers of the cluster name."""
        return replace(self, host=host, port=port, sentinels=None, seeds=())

    def of_seeds(self) -> list[RedisAddress]:
        """Return the addresses of the servers that know the others of the Redis Cluster."""
        return [self.with_server(host, port) for host, port in self.seeds]

    def of_sentinels(self) -> list[RedisAddress]:
        """Return the address of each Sentinel; none if there are no Sentinels."""
        if (known := self.sentinels) is None:
            return []
        own = replace(self, username=known.username, password=known.password, database=0)
        return [own.with_server(host, port) for host, port in known.hosts]


def with_credentials(url: str, environment: Mapping[str, str]) -> str:
    """Return the URL with user name and password of the environment, unless it has its own.

    Both are as in the Secret, not escaped, without the end of line that ``echo`` adds.  A URL of
    Sentinels has also those for the Sentinels.
    """
    if "://" not in url:
        return url
    url = _with_those_of_sentinels(url, environment)
    username = _escaped(environment, REDIS_USERNAME_VARIABLE)
    password = _escaped(environment, REDIS_PASSWORD_VARIABLE)
    scheme, _, rest = url.partition("://")
    location = rest.partition("?")[0].partition("/")[0]
    if not (username or password) or "@" in location or _has_option(url, "username", "password"):
        return url
    return f"{scheme}://{username}:{password}@{rest}"


def _with_those_of_sentinels(url: str, environment: Mapping[str, str]) -> str:
    username = _escaped(environment, SENTINEL_USERNAME_VARIABLE)
    password = _escaped(environment, SENTINEL_PASSWORD_VARIABLE)
    names = ("sentinel_username", "sentinel_password")
    if not (username or password) or not is_of_sentinels(url) or _has_option(url, *names):
        return url
    return (
        f"{url}{'&' if '?' in url else '?'}sentinel_username={username}"
        f"&sentinel_password={password}"
    )


def _escaped(environment: Mapping[str, str], variable: str) -> str:
    return quote(environment.get(variable, "").rstrip("\r\n"), safe="")


def _has_option(url: str, *names: str) -> bool:
    given = dict(parse_qsl(url.partition("?")[2], keep_blank_values=True))
    return not given.keys().isdisjoint(names)


def is_of_sentinels(url: str) -> bool:
    """Return whether the URL has the scheme of Sentinels."""
    return url.lower().startswith(SENTINEL_SCHEMES)


def is_tls(url: str) -> bool:
    """Return whether the URL has a scheme with TLS."""
    return url.lower().startswith(TLS_SCHEMES)


def parse_url(url: str) -> RedisAddress:
    """Parse a URL; raises ``AddressError``."""
    try:
        if is_of_sentinels(url):
            return _of_sentinels(url)
        if url.lower().startswith(CLUSTER_SCHEMES):
            return _of_cluster(url)
        parts = urlsplit(url)
        location = _location(parts, unquote(parts.path))
        return _whole(location, parts, "" if location.socket else parts.path.strip("/"))
    except AddressError:
        raise
    except ValueError:  # of the standard library: its text may show parts of the URL
        raise AddressError("is not a URL; escape special characters in the password") from None


def _whole(location: RedisAddress, parts: SplitResult, database: str) -> RedisAddress:
    """Return the location with credentials, database and options."""
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    database = query.pop("db", database) or "0"
    if not database.isdecimal():
        raise AddressError("the database must be a number")
    if "@" in parts.query + parts.fragment:  # options of a password's, so name none
        raise AddressError("escape special characters in the password")
    asked = {name: query.pop(name, "") for name in ("username", "password")}
    given = {
        "username": unquote(parts.username or "") or asked["username"],
        "password": unquote(parts.password or "") or asked["password"],
        "database": int(database),
    }
    if location.sentinels is not None:
        username, password = (query.pop(f"sentinel_{name}", "") for name in asked)
        given["sentinels"] = replace(location.sentinels, username=username, password=password)
    return _with_tls(location, query, given)


def _of_sentinels(url: str) -> RedisAddress:
    hosts, parts = _split(url)
    known = tuple(_host(text, SENTINEL_PORT, f"Sentinels, {_SENTINEL_FORM}") for text in hosts)
    service, _, database = parts.path.strip("/").partition("/")
    if not _SERVICE.fullmatch(service):
        raise AddressError(f"needs the name of the service: {_SENTINEL_FORM}")
    location = RedisAddress(tls=is_tls(url), sentinels=Sentinels(service, known))
    return _whole(location, parts, database)


def _of_cluster(url: str) -> RedisAddress:
    hosts, parts = _split(url)
    seeds = tuple(
        _host(text, PORT, f"servers of the Redis Cluster, {_CLUSTER_FORM}") for text in hosts
    )
    location = RedisAddress(tls=is_tls(url), seeds=seeds, is_of_cluster=True)
    address = _whole(location, parts, parts.path.strip("/"))
    if address.database:
        raise AddressError("a Redis Cluster has only the database 0")
    return address


def _split(url: str) -> tuple[list[str], SplitResult]:
    """Split a URL with several hosts, which the standard library does not take, at these."""
    rest = url.partition("://")[2]
    end = re.search(r"[/?#]", rest)
    authority, rest = (rest[: end.start()], rest[end.start() :]) if end else (rest, "")
    credentials, _, hosts = authority.rpartition("@")
    return hosts.split(","), urlsplit(f"redis://{credentials}@hosts{rest}")


def _host(text: str, default_port: int, meant: str) -> tuple[str, int]:
    """Return host and port of one server; ``text`` may be a part of a password."""
    found = _HOST.fullmatch(text)
    port = int(found["port"] or default_port) if found else 0
    if found is None or not 0 < port <= _MOST_PORT:
        raise AddressError(
            f"needs the hosts of {meant}, with numbers as ports;"
            " escape special characters in the password"
        )
    return found["host"].strip("[]"), port


def problem(url: str) -> str:
    """Return what is wrong with a URL; "" for a valid one."""
    try:
        parse_url(url)
    except AddressError as error:
        return str(error)
    return ""


def explained(reply: str, address: RedisAddress) -> str:
    """Return an error reply of a server without the password that it may repeat."""
    if reply.startswith(_OF_CLUSTER) and not address.is_of_cluster:
        return f"{IS_OF_CLUSTER} ({reply.split(maxsplit=1)[0]})"
    return reply.replace(address.password, _HIDDEN) if address.password else reply


def _location(parts: SplitResult, path: str) -> RedisAddress:
    if parts.scheme == "unix":
        if not path:
            raise AddressError("unix:// needs the path of a socket")
        return RedisAddress(socket=path)
    if parts.scheme in ("redis", "rediss") and "," in parts.netloc.rpartition("@")[2]:
        raise AddressError(SINGLE_SERVER)
    if parts.scheme not in ("redis", "rediss"):
        raise AddressError(f"must begin with {', '.join(SCHEMES)}")
    try:
        port = parts.port or PORT
    except ValueError:  # its text may show a part of a password that holds a # or /
        raise AddressError(
            "the port must be a number; escape special characters in the password"
        ) from None
    return RedisAddress(host=parts.hostname or "localhost", port=port, tls=parts.scheme == "rediss")


def _with_tls(location: RedisAddress, query: dict[str, str], given: dict[str, Any]) -> RedisAddress:
    files: dict[str, Any] = {name: query.pop(name) for name in TLS_FILES if name in query}
    checks = query.pop("ssl_cert_reqs", "required")
    if checks not in _TLS_CHECKS:
        raise AddressError(f"ssl_cert_reqs is one of {', '.join(_TLS_CHECKS)}")
    if query:
        raise AddressError(f"no such option: {', '.join(sorted(query))}")
    return replace(location, ssl_cert_reqs=checks, **given, **files)
