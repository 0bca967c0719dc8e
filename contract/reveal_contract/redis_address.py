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
NOT_ONE = (
    "Redis Cluster and Sentinel are not supported: give the address of one Redis, as a"
    " Service or proxy in front of the primary has"
)
# what redis-py calls them too; for the others, host defaults are right
TLS_FILES = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
_TLS_CHECKS = ("required", "none")
_SEVERAL = re.compile(r"sentinel|cluster", re.IGNORECASE)
# error replies of a server that is a part of a Redis Cluster
_OF_CLUSTER = ("MOVED ", "ASK ", "CLUSTERDOWN ", "CROSSSLOT ")
_HIDDEN = "***"


class AddressError(ValueError):
    """What was given is not the address of one Redis; the text says why."""


@dataclass(frozen=True)
class Address:
    """Where a Redis is and how to be let in; ``socket`` wins over host and port."""

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
    """The URL with user name and password of the environment, unless it has its own.

    Both are as the Secret holds them, not escaped; the end of line that ``echo`` leaves there
    is no part of them.
    """
    username = environment.get(REDIS_USERNAME_VARIABLE, "").rstrip("\r\n")
    password = environment.get(REDIS_PASSWORD_VARIABLE, "").rstrip("\r\n")
    scheme, found, rest = url.partition("://")
    if not found or not (username or password) or _has_credentials(rest):
        return url
    return f"{scheme}://{quote(username, safe='')}:{quote(password, safe='')}@{rest}"


def _has_credentials(rest: str) -> bool:
    place, _, query = rest.partition("?")
    given = dict(parse_qsl(query, keep_blank_values=True))
    return "@" in place.partition("/")[0] or not given.keys().isdisjoint(("username", "password"))


def parse_url(url: str) -> Address:
    """The address a URL says; raises ``AddressError``."""
    try:
        parts = urlsplit(url)
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        place = _place(parts, unquote(parts.path))
        database = query.pop("db", "" if place.socket else parts.path.strip("/")) or "0"
        if not database.isdecimal():
            raise AddressError("the database is a number")
        if "@" in parts.query + parts.fragment:  # options of a password's, so name none
            raise AddressError("escape what is special in a password")
        asked = {name: query.pop(name, "") for name in ("username", "password")}
        given = {
            "username": unquote(parts.username or "") or asked["username"],
            "password": unquote(parts.password or "") or asked["password"],
            "database": int(database),
        }
        return _with_tls(place, query, given)
    except AddressError:
        raise
    except ValueError:  # of the standard library: its text may show what stands in the URL
        raise AddressError("is no URL; escape what is special in a password") from None


def problem(url: str) -> str:
    """What is wrong with a URL, "" where nothing is."""
    try:
        parse_url(url)
    except AddressError as error:
        return str(error)
    return ""


def explained(reply: str, password: str = "") -> str:
    """An error reply of a server as it may be shown: without the password it may repeat."""
    if reply.startswith(_OF_CLUSTER):
        return f"{NOT_ONE} ({reply.split(maxsplit=1)[0]})"
    return reply.replace(password, _HIDDEN) if password else reply


def _place(parts: SplitResult, path: str) -> Address:
    if parts.scheme == "unix":
        if not path:
            raise AddressError("unix:// needs the path of a socket")
        return Address(socket=path)
    if _SEVERAL.search(parts.scheme) or "," in parts.netloc.rpartition("@")[2]:
        raise AddressError(NOT_ONE)
    if parts.scheme not in ("redis", "rediss"):
        raise AddressError(f"must begin with {', '.join(SCHEMES)}")
    try:
        port = parts.port or PORT
    except ValueError:  # its text may show a part of a password that holds a # or /
        raise AddressError("port is no number; escape what is special in a password") from None
    return Address(host=parts.hostname or "localhost", port=port, tls=parts.scheme == "rediss")


def _with_tls(place: Address, query: dict[str, str], given: dict[str, Any]) -> Address:
    files: dict[str, Any] = {name: query.pop(name) for name in TLS_FILES if name in query}
    checks = query.pop("ssl_cert_reqs", "required")
    if checks not in _TLS_CHECKS:
        raise AddressError(f"ssl_cert_reqs is one of {', '.join(_TLS_CHECKS)}")
    if query:
        raise AddressError(f"no such option: {', '.join(sorted(query))}")
    return replace(place, ssl_cert_reqs=checks, **given, **files)
