"""Which server of a Redis Cluster has a key: its slot, the servers of slots, redirections.

The protocol is https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/.
"""

from __future__ import annotations

import binascii
import re
from typing import Any, NamedTuple

from reveal_contract.redis_address import RedisAddress
from reveal_contract.redis_search import Ask, NoAnswerError, ServerRotation

SLOTS = 16_384
SLOTS_COMMAND = ("CLUSTER", "SLOTS")
MOST_REDIRECTIONS = 5  # of one command, before it fails
_REDIRECTION = re.compile(
    r"(?P<kind>MOVED|ASK) (?P<slot>[0-9]{1,5}) (?P<host>\S*):(?P<port>[0-9]{1,5})\s*"
)
_UNKNOWN_HOSTS = ("", "?")  # the server that was asked is the one that is meant


class NoClusterError(OSError):
    """No server says who has the slots, or nobody has one; the text says why."""


def key_slot(key: str | bytes) -> int:
    """Return the slot of a key: of what is in its first braces, if there is something."""
    data = key.encode() if isinstance(key, str) else key
    begin = data.find(b"{") + 1
    end = data.find(b"}", begin) if begin else -1
    tag = data[begin:end] if end > begin else data
    return binascii.crc_hqx(tag, 0) % SLOTS


class Redirection(NamedTuple):
    """Another server has the slot: for good or, while it moves, for a single command."""

    is_temporary: bool
    slot: int
    host: str  # "" or "?" for the server that replied
    port: int


def redirection(reply: str) -> Redirection | None:
    """Return what an error reply says of another server; None for any other error."""
    found = _REDIRECTION.fullmatch(reply)
    if found is None:
        return None
    is_temporary = found["kind"] == "ASK"
    return Redirection(is_temporary, int(found["slot"]), found["host"], int(found["port"]))


class ClusterMap:
    """The primaries of the slots, asked of any server when they are needed; threads may share it.

    ``errors`` is what ``ask`` raises, and ``seconds`` how long a search may take.
    """

    def __init__(
        self, address: RedisAddress, ask: Ask, errors: tuple[type[Exception], ...], seconds: float
    ) -> None:
        self._address, self._ask, self._seconds = address, ask, seconds
        self._seeds = self._known = address.of_seeds()
        self._rotation = ServerRotation(errors)
        self._ranges: list[tuple[range, RedisAddress]] = []
        self._moved: dict[int, RedisAddress] = {}

    def server(self, slot: int) -> RedisAddress:
        """Return the primary of a slot; raises ``NoClusterError``."""
        if found := self._moved.get(slot):
            return found
        if not self._ranges:
            self._ranges = self._search()
        for slots, server in self._ranges:
            if slot in slots:
                return server
        self.forget()
        raise NoClusterError(f"no server of the Redis Cluster has slot {slot}")

    def primaries(self) -> list[RedisAddress]:
        """Return all primaries with slots; raises ``NoClusterError``."""
        if self._moved or not self._ranges:
            self._ranges, self._moved = self._search(), {}
        return list(dict.fromkeys(server for _, server in self._ranges))

    def redirected(self, server: RedisAddress, to: Redirection) -> RedisAddress:
        """Return where a server redirects a command to, and note it if the slot has moved."""
        host = server.host if to.host in _UNKNOWN_HOSTS else to.host
        found = self._address.with_server(host, to.port)
        if not to.is_temporary:
            self._moved[to.slot] = found
        return found

    def forget(self) -> None:
        """Ask again before the next command, as after an outage: a replica may be primary now."""
        self._ranges, self._moved = [], {}

    def _search(self) -> list[tuple[range, RedisAddress]]:
        # the seeds stay: their names may lead to new servers when all known ones are gone
        servers = list(dict.fromkeys((*self._known, *self._seeds)))
        try:
            found = self._rotation.first_answer(servers, self._seconds, self._slots)
        except NoAnswerError as error:
            raise NoClusterError(f"no server of the Redis Cluster answers: {error}") from None
        self._known = list(dict.fromkeys(server for _, server in found))
        return found

    def _slots(self, server: RedisAddress, share: float) -> list[tuple[range, RedisAddress]]:
        """Ask one server; raise ``ValueError`` if it knows no slot."""
        reply = self._ask(server, SLOTS_COMMAND, share / 2)  # to connect, and to receive the reply
        if not reply:
            raise ValueError("it knows no server of a slot")
        return [
            (range(first, last + 1), self._named(server, primary))
            for first, last, primary, *_ in reply
        ]

    def _named(self, asked: RedisAddress, primary: list[Any]) -> RedisAddress:
        host, port, *_ = primary
        text = host.decode() if host else ""
        return self._address.with_server(asked.host if text in _UNKNOWN_HOSTS else text, int(port))
