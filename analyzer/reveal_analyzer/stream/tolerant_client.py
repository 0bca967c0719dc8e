"""A client of redis-py that takes a key of another type for one that is not there.

Whoever may write to Redis can put a string where Reveal has a hash.  Such a key must not stop what
has nothing to do with it: what is read of it is empty, what is written to it is dropped, and a
condition names it.  Commands of streams and scripts raise: who sends them has a better answer.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

import redis

from reveal_analyzer.telemetry.degraded import Degradation
from reveal_contract.foreign_names import printable
from reveal_contract.kube.names import clipped

log = logging.getLogger(__name__)

REASON = "KeysOfAnotherType"
WRONG_TYPE = "WRONGTYPE"
Arguments = tuple[Any, ...]

_NAMED_SECONDS = 120.0  # since the last command on a key
_MOST_KEYS = 64
_MESSAGE_BYTES = 512
# words of a command before its key, where that is not the second word
_KEY_AFTER = {"EVAL": 3, "EVALSHA": 3}
_STREAMS = b"STREAMS"  # as redis-py writes it
_WITHOUT_KEY = frozenset({"TIME", "INFO", "PING"})


def _nothing(_: Arguments) -> None:
    return None


def _zero(_: Arguments) -> int:
    return 0


def _no_rows(_: Arguments) -> list[Any]:
    return []


# replies as for a key that is not there
_ABSENT: dict[str, Callable[[Arguments], Any]] = {
    "GET": _nothing, "HGET": _nothing, "HMGET": lambda arguments: [None] * (len(arguments) - 2),
    "HGETALL": lambda _: {}, "HKEYS": _no_rows, "ZRANGE": _no_rows, "ZRANGEBYSCORE": _no_rows,
    "HSET": _zero, "HDEL": _zero, "ZADD": _zero, "ZREM": _zero, "APPEND": _zero, "STRLEN": _zero,
    "HSTRLEN": _zero, "GETRANGE": lambda _: b"",
}  # fmt: skip


class TolerantClient(redis.Redis):
    """A client for one server."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._foreign: dict[str, float] = {}  # keys of another type, and when they were met

    def execute_command(self, *arguments: Any, **options: Any) -> Any:
        """Send a command and return its reply."""
        try:
            return super().execute_command(*arguments, **options)  # type: ignore[no-untyped-call]
        except redis.ResponseError as error:
            reply = self.tolerated(arguments, error)
            if isinstance(reply, Exception):
                raise
            return reply

    def pipeline(self, transaction: bool = True, shard_hint: Any = None) -> TolerantPipeline:
        """Return a pipeline in which such keys are not there either."""
        return TolerantPipeline(self, transaction, shard_hint)

    def tolerated(self, arguments: Arguments, reply: Any) -> Any:
        """Return the reply to use in place of an error about a key of another type."""
        if not isinstance(reply, redis.ResponseError) or not is_of_wrong_type(reply):
            return reply
        self._note(text_of(key_of(arguments)))
        absent = _ABSENT.get(str(arguments[0]).upper())
        return reply if absent is None else absent(arguments)

    def disconnect(self) -> None:
        """Close all connections; the next command opens one again."""
        self.connection_pool.disconnect()

    def foreign_keys(self) -> list[str]:
        """Return the keys of another type that were met lately."""
        oldest = time.monotonic() - _NAMED_SECONDS
        return [key for key, met in list(self._foreign.items()) if met > oldest]

    def _note(self, key: str) -> None:
        now = time.monotonic()
        if now - self._foreign.get(key, -_NAMED_SECONDS) >= _NAMED_SECONDS:
            log.error("key %s has another type than Reveal's and is not used: delete it", key)
        self._foreign[key] = now
        if len(self._foreign) > _MOST_KEYS:
            del self._foreign[min(self._foreign, key=self._foreign.__getitem__)]


class TolerantPipeline(redis.client.Pipeline):
    """The pipeline of a tolerant client."""

    def __init__(self, client: TolerantClient, transaction: bool, shard_hint: Any) -> None:
        super().__init__(client.connection_pool, client.response_callbacks, transaction, shard_hint)
        self._client = client

    def execute(self, raise_on_error: bool = True) -> list[Any]:
        """Send the commands and return their replies; raises the first error if asked to."""
        stack = [arguments for arguments, _ in self.command_stack]
        found = super().execute(raise_on_error=False)
        replies = [
            self._client.tolerated(arguments, reply)
            for arguments, reply in zip(stack, found, strict=True)
        ]
        return raised(replies) if raise_on_error else replies


def raised(replies: list[Any]) -> list[Any]:
    """Return the replies; raise the first error among them."""
    for reply in replies:
        if isinstance(reply, Exception):
            raise reply
    return replies


def is_of_wrong_type(error: Exception) -> bool:
    """Return whether a key has another type than the command expects, also within a script."""
    return WRONG_TYPE in str(error)


def degradations(keys: list[str]) -> list[Degradation]:
    """Return what a condition says of keys of another type."""
    if not keys:
        return []
    named = ", ".join(printable(key) for key in sorted(keys))
    text = f"Redis has something else than Reveal's data in these keys, delete them: {named}"
    return [Degradation(REASON, len(keys), clipped(text, _MESSAGE_BYTES))]


def key_of(arguments: Arguments) -> str | bytes | None:
    """Return the first key of a command; None for one that has none."""
    name = str(arguments[0]).upper()
    if name in _WITHOUT_KEY:
        return None
    position = _KEY_AFTER.get(name, 1)
    if name == "XREADGROUP":
        position = arguments.index(_STREAMS) + 1
    key = arguments[position]
    return key if isinstance(key, str | bytes) else str(key)


def text_of(key: str | bytes | None) -> str:
    """Return a key as text."""
    return key.decode(errors="replace") if isinstance(key, bytes) else str(key)
