"""Checkpoints: what was learned about nodes is saved each minute, and restored at a takeover."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar
from zlib import crc32

import redis

from reveal_analyzer.state.codec import Position, SavedState, SectionPath, encode
from reveal_analyzer.state.store import NodeStateStore, TooOldError
from reveal_analyzer.state.tree import StateError, Stateful

log = logging.getLogger(__name__)

INTERVAL_S = 60
RESULTS = ("saved", "restored", "unreadable", "old", "failed")
_OUTAGE = (redis.RedisError, OSError)
_BATCH = 64  # states written together, about a megabyte
_LOGGED = 20  # lines of each result in a run of the process; all are counted


_Part = TypeVar("_Part", bound=Stateful)


class Checkpoints:
    """The saved states of the nodes of one analyzer.

    It never raises because of Redis or a state: a state that cannot be used is logged and counted,
    and its node is learned again.
    """

    def __init__(self, store: NodeStateStore, optional: Sequence[SectionPath] = ()) -> None:
        self.counts: Counter[str] = Counter(dict.fromkeys(RESULTS, 0))
        self._store, self._optional = store, optional
        self._taken: dict[str, bytes] = {}  # of shards taken over, not restored yet

    def take(self, states: Mapping[str, bytes]) -> None:
        """Keep the states of the nodes of shards that were taken over."""
        self._taken.update(states)

    def waiting(self) -> list[str]:
        """Return the nodes whose state has not been restored yet."""
        return list(self._taken)

    def retry(self, node: str) -> None:
        """Restore the last saved state of a node again, as after a failure of its analysis."""
        try:
            data = self._store.of_node(node)
        except _OUTAGE as error:
            self._note("failed", f"saved state of node {node} cannot be read: {error}")
            return
        if data is not None:
            self._taken[node] = data

    def restore(self, node: str, make: Callable[[], _Part]) -> tuple[_Part, SavedState | None]:
        """Return a new part for a node, and the state that it continues with, if there is one."""
        part, data = make(), self._taken.pop(node, None)
        if data is None:
            return part, None
        try:
            state = self._store.usable(node, data)
            part.restore(state.tree)
        except TooOldError as error:
            self._note("old", f"node {node} is learned again: its saved state is too old: {error}")
        except StateError as error:
            self._note(
                "unreadable", f"node {node} is learned again: its saved state is refused: {error}"
            )
        except Exception:
            # A state that no check refused must not stop the other nodes.
            self._note(
                "unreadable", f"node {node} is learned again: its saved state fails", traceback=True
            )
        else:
            self.counts["restored"] += 1
            return part, state
        return make(), None  # the first may be restored halfway

    def save(self, nodes: Iterable[tuple[Position, Stateful]], seconds: float = 1e9) -> bool:
        """Save the state of nodes; return whether all were tried within so many seconds."""
        ends, batch = time.monotonic() + seconds, dict[str, bytes]()
        for position, part in nodes:
            if time.monotonic() > ends:
                self._write(batch)
                return False
            data = self._encoded(position, part)
            if data is not None:
                batch[position.node] = data
            if len(batch) == _BATCH:
                self._write(batch)
                batch = {}
        self._write(batch)
        return True

    def forget(self, node: str) -> None:
        """Forget a node that another analyzer owns now; its saved state stays."""
        self._taken.pop(node, None)

    def delete(self, nodes: Sequence[str]) -> None:
        """Delete the states of nodes that have left."""
        for node in nodes:
            self._taken.pop(node, None)
        try:
            self._store.delete(nodes)
        except _OUTAGE as error:
            self._note("failed", f"saved states of {len(nodes)} nodes are not deleted: {error}")

    def _encoded(self, position: Position, part: Stateful) -> bytes | None:
        try:
            state = SavedState(position, self._store.now_s(), part.save())
            return encode(state, self._optional)
        except StateError as error:
            self._note("failed", f"state of node {position.node} is not saved: {error}")
        except Exception:
            # A defect in the state of one node must not stop the others.
            self._note("failed", f"state of node {position.node} is not saved", traceback=True)
        return None

    def _write(self, batch: Mapping[str, bytes]) -> None:
        if not batch:
            return
        try:
            self._store.save(batch)
        except _OUTAGE as error:  # the reader of the slices logs an outage; Redis may be full
            self._note("failed", f"states of {len(batch)} nodes are not saved: {error}")
        else:
            self.counts["saved"] += len(batch)

    def _note(self, result: str, message: str, *, traceback: bool = False) -> None:
        self.counts[result] += 1
        if self.counts[result] <= _LOGGED:
            log.warning(message, exc_info=traceback)


def first_save_s(node: str, now_s: float) -> float:
    """Return when a node is saved first: nodes that begin together are spread over a minute."""
    return now_s + 1 + crc32(node.encode()) % INTERVAL_S
