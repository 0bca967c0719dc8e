"""Which server is the primary of a service now: what its Sentinels say, and what it says itself.

The protocol is https://redis.io/docs/latest/develop/reference/sentinel-clients/.  The role is asked
by HELLO and not by ROLE, which is among the dangerous commands: HELLO needs no right of an ACL.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reveal_contract.redis_address import RedisAddress
from reveal_contract.redis_search import Ask, NoAnswerError, ServerRotation

ROLE_COMMAND = ("HELLO",)
HUNG_SECONDS = 0.1  # to greet a server; after a longer time the Sentinels are asked again
_PRIMARY = b"master"


class NoPrimaryError(OSError):
    """No Sentinel names a primary; the text has the reason of each."""


def is_primary(hello: Sequence[Any]) -> bool:
    """Return whether the reply to ``ROLE_COMMAND`` (RESP2) is that of a primary."""
    return dict(zip(hello[::2], hello[1::2], strict=False)).get(b"role") == _PRIMARY


class PrimarySearch:
    """Asks the Sentinels of an address in turn; threads may share it.

    ``errors`` is what ``ask`` raises.
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
        self._rotation = ServerRotation(errors)

    def find(self, seconds: float) -> RedisAddress:
        """Return the primary that the first Sentinel names that responds.

        Takes about ``seconds`` at most.  Raises ``NoPrimaryError``.
        """
        try:
            found = self._rotation.first_answer(self._sentinels, seconds, self._primary)
        except NoAnswerError as error:
            raise NoPrimaryError(
                f"no Sentinel names a primary of {self.service}: {error}"
            ) from None
        return self._address.with_server(*found)

    def is_current(
        self, server: RedisAddress, hello: Sequence[Any], greeting_s: float, seconds: float
    ) -> bool:
        """Return whether a server is the primary, by its role and, if it hung, by the Sentinels.

        One that took long for its greeting may have been replaced meanwhile, without knowing it.
        """
        if not is_primary(hello):
            return False
        if greeting_s <= HUNG_SECONDS:
            return True
        found = self.find(seconds)
        return (found.host, found.port) == (server.host, server.port)

    def _primary(self, sentinel: RedisAddress, share: float) -> tuple[str, int]:
        """Ask one Sentinel; raise ``ValueError`` if the reply names no primary."""
        command = ("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self.service)
        reply = self._ask(sentinel, command, share / 2)  # to connect, and to receive the reply
        if reply is None:
            raise ValueError("it does not know this service")
        host, port = reply
        return host.decode(), int(port)


def not_primary(address: RedisAddress, service: str) -> str:
    """Return the sentence about a server that a Sentinel named and that is no primary."""
    return f"{address.name} is not the primary of {service} now"
