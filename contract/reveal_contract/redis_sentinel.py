"""Which server is the primary of a service now: what its Sentinels say, and what it says itself.

The protocol is https://redis.io/docs/latest/develop/reference/sentinel-clients/.  The role is asked
by HELLO and not by ROLE, which is among the dangerous commands: HELLO needs no right of an ACL.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from reveal_contract.redis_address import RedisAddress, explained
from reveal_contract.runtime.backoff import uniform

ROLE_COMMAND = ("HELLO",)
_PRIMARY = b"master"

Ask = Callable[[RedisAddress, tuple[str, ...], float], Any]


class NoPrimaryError(OSError):
    """No Sentinel names a primary; the text has the reason of each."""


def is_primary(hello: Sequence[Any]) -> bool:
    """Return whether the reply to ``ROLE_COMMAND`` (RESP2) is that of a primary."""
    return dict(zip(hello[::2], hello[1::2], strict=False)).get(b"role") == _PRIMARY


class PrimarySearch:
    """Asks the Sentinels of an address in turn; threads may share it.

    ``ask(sentinel, command, timeout)`` sends a command to one Sentinel and returns its reply;
    ``timeout`` is in seconds, for each wait.  ``errors`` is what it raises.

    Each search begins with the next Sentinel: one that is away or outdated costs one attempt, and
    the collectors of a cluster, which all lose the primary together, do not ask the same one.
    """

    def __init__(
        self, address: RedisAddress, ask: Ask, errors: tuple[type[Exception], ...]
    ) -> None:
        if address.sentinels is None:
            raise ValueError("not an address of Sentinels")
        self.service = address.sentinels.service
        self._address = address
        self._sentinels = address.of_sentinels()
        self._ask = ask
        self._errors: tuple[type[Exception], ...] = (*errors, ValueError)
        self._next = int(uniform() * len(self._sentinels))

    def find(self, seconds: float) -> RedisAddress:
        """Return the primary that the first Sentinel names that responds.

        Takes about ``seconds`` at most, of which each Sentinel has its share.  Raises
        ``NoPrimaryError``.
        """
        ends, reasons = time.monotonic() + seconds, []
        count = len(self._sentinels)
        for left in range(count, 0, -1):
            sentinel = self._sentinels[self._next % count]
            self._next += 1
            share = max(0.0, ends - time.monotonic()) / left
            try:
                return self._address.with_server(*self._primary(sentinel, share))
            except self._errors as error:
                reason = explained(str(error) or type(error).__name__, sentinel.password)
                reasons.append(f"{_name(sentinel)}: {reason}")
        raise NoPrimaryError(
            f"no Sentinel names a primary of {self.service}: {'; '.join(sorted(reasons))}"
        )

    def _primary(self, sentinel: RedisAddress, share: float) -> tuple[str, int]:
        """Ask one Sentinel; raise ``ValueError`` if the reply names no primary."""
        if not share:
            raise ValueError("there was no time left to ask it")
        command = ("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self.service)
        reply = self._ask(sentinel, command, share / 2)  # to connect, and to receive the reply
        if reply is None:
            raise ValueError("it does not know this service")
        host, port = reply
        return host.decode(), int(port)


def not_primary(address: RedisAddress, service: str) -> str:
    """Return the sentence about a server that a Sentinel named and that is no primary."""
    return f"{_name(address)} is not the primary of {service} now"


def _name(address: RedisAddress) -> str:
    return f"{address.host}:{address.port}"
