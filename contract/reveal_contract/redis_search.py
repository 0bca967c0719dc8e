"""Ask several servers in turn until one answers."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from reveal_contract.redis_address import RedisAddress, explained
from reveal_contract.runtime.backoff import uniform

# ``ask(server, command, timeout)`` sends a command to one server and returns its reply (RESP2);
# ``timeout`` is in seconds, for each wait
Ask = Callable[[RedisAddress, tuple[str, ...], float], Any]
Answer = TypeVar("Answer")


class NoAnswerError(OSError):
    """No server answered; the text has the reason of each."""


class ServerRotation:
    """Asks servers in turn; threads may share it.

    Each search begins with the next server: one that is away or outdated costs one attempt, and
    the collectors of a cluster, which all lose a primary together, do not ask the same one.
    ``errors`` is what a question raises.
    """

    def __init__(self, errors: tuple[type[Exception], ...]) -> None:
        # an answer of another shape is none either
        self._errors: tuple[type[Exception], ...] = (*errors, ValueError, TypeError)
        self._start = uniform()
        self._searches = 0

    def first_answer(
        self,
        servers: Sequence[RedisAddress],
        seconds: float,
        question: Callable[[RedisAddress, float], Answer],
    ) -> Answer:
        """Return the answer of the first server that has one.

        ``question`` gets a server and the seconds that it may take.  All servers together take
        about ``seconds`` at most, of which each has its share.  Raises ``NoAnswerError``.
        """
        ends, reasons = time.monotonic() + seconds, []
        count = len(servers)
        for left in range(count, 0, -1):
            server = servers[(int(self._start * count) + self._searches) % count]
            self._searches += 1
            share = max(0.0, ends - time.monotonic()) / left
            try:
                if not share:
                    raise ValueError("there was no time left to ask it")
                return question(server, share)
            except self._errors as error:
                reason = explained(str(error) or type(error).__name__, server)
                reasons.append(f"{server.name}: {reason}")
        raise NoAnswerError("; ".join(sorted(reasons)))
