"""Keeps the history of the nodes of an analyzer: a thread packs a minute of a node at a time.

The loop of the analyzer adds slices and never waits.  What cannot be kept is lost and reported; it
stops nothing.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from uuid import uuid4

import numpy as np

from reveal_analyzer.node_history.codec import Part, encode
from reveal_analyzer.node_history.rows import Row, RowPlan
from reveal_analyzer.node_history.stores import HistoryStore
from reveal_analyzer.stream.redis_connection import OUTAGE
from reveal_analyzer.telemetry.degraded import Degradation
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.kube.names import clipped
from reveal_contract.runtime.paced_thread import PacedThread
from reveal_contract.wire import Message

log = logging.getLogger(__name__)

REASON = "HistoryNotKept"
PART_SECONDS = 60
_LATE_S = 1.5 * PART_SECONDS  # a node that is silent: its last seconds are kept now
_MOST_WAITING = 64  # parts, and two for each node: in an outage the oldest are lost
_MOST_PLANS = 4096  # nodes with the same table share one
_WIDER = 2  # times the channels of a part: those that ended fill the columns of the hour
_ENDED_COLUMNS = 512
_SHARE = 0.2  # of a CPU, as the analysis of all nodes shares the interpreter
_IDLE_SECONDS = 1.0
_FAILED_FOR_S = 120.0
_CLOSE_SECONDS = 1.0
_MESSAGE_BYTES = 400
_DEFECT = "see the log of the analyzer"


@dataclass
class _Written:
    """What this writer wrote in an hour of a node.

    ``columns`` are its channels, in the order of their columns; ``size`` is how many bytes the hour
    had after its last part.
    """

    hour: int
    boot: bytes
    size: int = 0
    writer: str = field(default_factory=lambda: uuid4().hex)
    columns: dict[Channel, int] = field(default_factory=dict)


@dataclass
class _Waiting:
    """The last seconds of a node, which are no part yet."""

    since_s: float
    rows: list[Row] = field(default_factory=list)


class HistoryKeeper:
    """Takes the slices of nodes; the thread does the rest once ``start`` was called."""

    def __init__(self, store: HistoryStore, clock: Callable[[], float] = time.monotonic) -> None:
        self._store, self._clock = store, clock
        self._lock = threading.Lock()
        self._plans: dict[bytes, RowPlan] = {}
        self._waiting: dict[str, _Waiting] = {}
        self._ready: deque[tuple[str, Sequence[Row]]] = deque()
        self._written: dict[str, _Written] = {}
        self._failed: tuple[float, str, str] | None = None  # when, the node, and why
        self._thread = PacedThread(
            "reveal-history", self.run_due, share=_SHARE, idle_seconds=_IDLE_SECONDS
        )

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def add(self, message: Message, table: ChannelTable) -> None:
        """Take the next slice of its node; never raises an error."""
        try:
            self._add(message.node, self._plan_of(table).row(message))
        except Exception:
            # a defect here must not stop the analysis
            self._fail(message.node, _DEFECT)

    def _add(self, node: str, row: Row) -> None:
        with self._lock:
            waiting = self._waiting.get(node)
            if waiting is not None and not _continues(waiting.rows, row):
                self._move(node)
                waiting = None
            if waiting is None:
                waiting = self._waiting[node] = _Waiting(self._clock())
            waiting.rows.append(row)

    def degradations(self) -> list[Degradation]:
        """Return what cannot be kept now."""
        with self._lock:
            failed = self._failed
        if failed is None or self._clock() - failed[0] > _FAILED_FOR_S:
            return []
        _, node, why = failed
        message = f"{node}: a minute of its history is not kept: {why}"
        return [Degradation(REASON, 1, clipped(message, _MESSAGE_BYTES))]

    def close(self) -> None:
        """Keep what there is, for a second at most, and end the thread."""
        with self._lock:
            for node in [*self._waiting]:
                self._move(node)
        self._thread.close(_CLOSE_SECONDS, finish=True)
        self._store.close()

    def run_due(self) -> bool:
        """Keep the oldest part that is complete; return whether there was one."""
        with self._lock:
            self._move_silent()
            found = self._ready.popleft() if self._ready else None
        if found is None:
            return False
        self._keep(*found)
        return True

    def _plan_of(self, table: ChannelTable) -> RowPlan:
        plan = self._plans.get(table.key)
        if plan is None:
            if len(self._plans) >= _MOST_PLANS:
                self._plans.clear()
            plan = self._plans[table.key] = RowPlan.of(table)
        return plan

    def _move(self, node: str) -> None:
        """Let the seconds of a node be a part."""
        self._ready.append((node, self._waiting.pop(node).rows))
        if len(self._ready) > _MOST_WAITING + 2 * len(self._waiting):
            lost, _ = self._ready.popleft()
            self._failed = self._clock(), lost, "the store did not take it in time"

    def _move_silent(self) -> None:
        before_s = self._clock() - _LATE_S
        for node in [name for name, each in self._waiting.items() if each.since_s < before_s]:
            self._move(node)

    def _keep(self, node: str, rows: Sequence[Row]) -> None:
        try:
            if not self._append(node, rows):
                del self._written[node]  # what named its channels is lost: name all again
                self._append(node, rows)
        except OUTAGE as error:
            self._fail(node, f"{type(error).__name__}: {error}")
        except Exception:
            # a defect that the data of one node triggers must not stop the others
            self._fail(node, _DEFECT)

    def _append(self, node: str, rows: Sequence[Row]) -> bool:
        """Write a part; return whether the parts before it, which it refers to, are there."""
        written = self._written_of(node, rows)
        data = encode(_part(node, rows, written, len(written.columns)))
        before = self._store.append(node, rows[0].hour, data)
        is_whole, written.size = before >= written.size, before + len(data)
        return is_whole

    def _written_of(self, node: str, rows: Sequence[Row]) -> _Written:
        """Return what was written of the hour of these rows; a new one begins its columns again."""
        written, hour, boot = self._written.get(node), rows[0].hour, rows[0].boot
        if written is not None and (written.hour, written.boot) == (hour, boot):
            width = max(len(row.channels) for row in rows)
            if len(written.columns) <= _WIDER * width + _ENDED_COLUMNS:
                return written
        self._written[node] = _Written(hour, boot)
        self._drop_old(hour)
        return self._written[node]

    def _drop_old(self, hour: int) -> None:
        """Drop what was written of nodes that are not here any more."""
        old = [node for node, each in self._written.items() if each.hour < hour - 1]
        for node in old:
            del self._written[node]

    def _fail(self, node: str, why: str) -> None:
        self._written.pop(node, None)  # the next part cannot refer to this one
        with self._lock:
            if self._failed is None or self._clock() - self._failed[0] > _FAILED_FOR_S:
                text = "%s: a minute of its history is not kept: %s"
                log.warning(text, node, why, exc_info=why is _DEFECT)
            self._failed = self._clock(), node, why


def _continues(rows: Sequence[Row], row: Row) -> bool:
    """Return whether a row belongs to the same part."""
    first = rows[0]
    return len(rows) < PART_SECONDS and (first.hour, first.boot) == (row.hour, row.boot)


def _part(node: str, rows: Sequence[Row], written: _Written, known: int) -> Part:
    """Return the part; its new channels are added to those that are written."""
    columns = written.columns
    tables = {id(row.channels): row.channels for row in rows}
    own = {
        key: [columns.setdefault(channel, len(columns)) for channel in channels]
        for key, channels in tables.items()
    }
    steps = np.full((len(rows), len(columns)), np.nan, np.float32)
    for index, row in enumerate(rows):
        steps[index, own[id(row.channels)]] = row.steps
    missing = np.isnan(steps)
    return Part(
        node, written.boot, written.writer, known, tuple(columns)[known:],
        np.array([row.sequence for row in rows], np.int64),
        np.array([row.start_ns for row in rows], np.int64),
        np.where(missing, 0, steps).astype(np.int64), missing,
    )  # fmt: skip
