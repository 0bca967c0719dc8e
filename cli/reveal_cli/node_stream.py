"""The stream of a node that another host watches; nothing there is changed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from reveal_cli.errors import CliError
from reveal_cli.live_view import collector_state
from reveal_contract.channels import ChannelTable
from reveal_contract.cpu_shares import EQUAL_SHARES
from reveal_contract.wire import Message

if TYPE_CHECKING:
    import redis

    from reveal_analyzer.node import Announced

Slice = tuple[Message, ChannelTable]
_Answer = TypeVar("_Answer")


class StreamOutageError(Exception):
    """The stream cannot be read now; the text says why."""


class NodeStream(Protocol):
    """The slices of one node, which are kept for two minutes."""

    node: str

    def since(self, start_ns: int) -> list[Slice]:
        """Return the slices that begin after a time of the node; raises ``StreamOutageError``."""

    def announced(self) -> Announced:
        """Return what the collector says of its subjects, each asked when it is needed."""

    def state(self) -> dict[str, Any]:
        """Return the last state that the collector published; empty where it cannot be read."""

    def why_empty(self) -> CliError:
        """Return why there is nothing to watch."""

    def close(self) -> None:
        """Release what is open."""


class RedisNodeStream:
    """A stream in the Redis of the collector."""

    def __init__(self, node: str, profile: str, url: str) -> None:
        from reveal_analyzer.evidence.stream_slices import StreamSlices  # noqa: PLC0415 - redis
        from reveal_analyzer.stream.redis_connection import connect  # noqa: PLC0415

        self.node, self._profile = node, profile
        self._client: redis.Redis = connect(url)
        self._slices = StreamSlices(self._client, profile)

    def since(self, start_ns: int) -> list[Slice]:
        from reveal_analyzer.stream.redis_connection import OUTAGE  # noqa: PLC0415 - redis

        try:
            return self._slices.since(self.node, start_ns)
        except OUTAGE as error:
            raise StreamOutageError(f"Redis cannot be read: {error}") from None

    def announced(self) -> Announced:
        from reveal_analyzer.node import Announced  # noqa: PLC0415 - numpy
        from reveal_analyzer.stream.redis_connection import OUTAGE  # noqa: PLC0415 - redis
        from reveal_analyzer.telemetry.node_records import (  # noqa: PLC0415
            node_shares,
            node_subjects,
        )

        client, profile, node = self._client, self._profile, self.node
        return Announced(
            last_known(lambda: node_subjects(client, profile, [node])[node], (), OUTAGE),
            last_known(partial(node_shares, client, profile, node), EQUAL_SHARES, OUTAGE),
        )

    def state(self) -> dict[str, Any]:
        return collector_state(self._client, self._profile, self.node)

    def why_empty(self) -> CliError:
        from reveal_analyzer.stream.redis_connection import OUTAGE  # noqa: PLC0415 - redis
        from reveal_analyzer.telemetry.node_records import known_nodes, nodes_text  # noqa: PLC0415

        known = ""
        with contextlib.suppress(*OUTAGE):
            known = nodes_text(known_nodes(self._client, self._profile))
        return CliError(
            f"node {self.node} of profile {self._profile} has sent nothing to this Redis"
            f" in the last two minutes{known}"
        )

    def close(self) -> None:
        with contextlib.suppress(Exception):  # nothing depends on it
            self._client.close()


def last_known(
    ask: Callable[[], _Answer],
    first: _Answer,
    outage: tuple[type[Exception], ...],
) -> Callable[[], _Answer]:
    """Return a function that asks, and returns its last answer during an outage."""
    known = first

    def answer() -> _Answer:
        nonlocal known
        with contextlib.suppress(*outage):
            known = ask()
        return known

    return answer
