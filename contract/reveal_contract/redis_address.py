"""Where a Redis is and who may in: one reading of its URL for collector and analyzer.

The forms are those of redis-py and redis-cli: ``redis://``, ``rediss://`` (TLS), ``unix://``.
No error, and no ``repr``, shows a password or a part of one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit

from reveal_contract.kube.names import REDIS_PASSWORD_VARIABLE, REDIS_USERNAME_VARIABLE

PORT = 6379
SCHEMES = ("redis://", "rediss://", "unix://")
CLUSTER_UNSUPPORTED = (
    "Redis Cluster and Sentinel are not supported: give the address of one Redis, such as a"
    " Service or proxy in front of the primary"
)
# what redis-py calls them too; for the others, host defaults are right
TLS_FILES = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
_TLS_CHECKS = ("required", "none")
_SEVERAL = re.compile(r"sentinel|cluster", re.IGNORECASE)
# error replies of a server that is a part of a Redis Cluster
_OF_CLUSTER = ("MOVED ", "ASK ", "CLUSTERDOWN ", "CROSSSLOT ")
_HIDDEN = "***"


class AddressError(ValueError):
    """The text is not the address of one Redis; the message says why."""


@dataclass(frozen=True)
class RedisAddress:
    """Address and credentials of a Redis; ``socket`` overrides host and port."""

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


def with_credentials(url: str, environment: Mapping[str, str]) -> str:
    """Return the URL with user name and password of the environment, unless it has its own.

    Both are as in the Secret, not escaped, without the end of line that ``echo`` adds.
    """
    username = environment.get(REDIS_USERNAME_VARIABLE, "").rstrip("\r\n")
    password = environment.get(REDIS_PASSWORD_VARIABLE, "").rstrip("\r\n")
    scheme, found, rest = url.partition("://")
    if not found or not (username or password) or _has_credentials(rest):
        return url
    return f"{scheme}://{quote(username, safe='')}:{quote(password, safe='')}@{rest}"


def _has_credentials(rest: str) -> bool:
    location, _, query = rest.partition("?")
    given = dict(parse_qsl(query, keep_blank_values=True))
    return "@" in location.partition("/")[0] or not given.keys().isdisjoint(
        ("username", "password")
    )


def parse_url(url: str) -> RedisAddress:
    """Parse a URL; raises ``AddressError``."""
    try:
        parts = urlsplit(url)
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        location = _location(parts, unquote(parts.path))
        database = query.pop("db", "" if location.socket else parts.path.strip("/")) or "0"
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
        return _with_tls(location, query, given)
    except AddressError:
        raise
    except ValueError:  # of the standard library: its text may show parts of the URL
        raise AddressError("is not a URL; escape special characters in the password") from None


def problem(url: str) -> str:
    """Return what is wrong with a URL; "" for a valid one."""
    try:
        parse_url(url)
    except AddressError as error:
        return str(error)
    return ""


def explained(reply: str, password: str = "") -> str:
    """Return an error reply of a server without the password that it may repeat."""
    if reply.startswith(_OF_CLUSTER):
        return f"{CLUSTER_UNSUPPORTED} ({reply.split(maxsplit=1)[0]})"
    return reply.replace(password, _HIDDEN) if password else reply


def _location(parts: SplitResult, path: str) -> RedisAddress:
    if parts.scheme == "unix":
        if not path:
            raise AddressError("unix:// needs the path of a socket")
        return RedisAddress(socket=path)
    if _SEVERAL.search(parts.scheme) or "," in parts.netloc.rpartition("@")[2]:
        raise AddressError(CLUSTER_UNSUPPORTED)
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
