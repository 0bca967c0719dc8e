"""Writes Events on profiles; ``reveal_contract.kube.events`` decides what becomes a series.

An Event never fails or delays a visit: one that cannot be sent is dropped and counted.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable

from reveal_contract.kube.errors import CONFLICT, NOT_FOUND, ApiError
from reveal_contract.kube.events import Event, EventReason, EventRecorder, Posting, profile
from reveal_contract.kube.names import OPERATOR_MANAGER
from reveal_operator.api import OperatorApi
from reveal_operator.metrics import OperatorMetrics
from reveal_operator.observed import ObservedProfile

WAITING = 256
SERIES_S = 60.0  # between two writes of series

_log = logging.getLogger(__name__)


class EventSender:
    """``publish`` from the event loop; ``run`` sends.  ``instance`` is the operator's pod."""

    def __init__(
        self,
        api: OperatorApi,
        instance: str,
        metrics: OperatorMetrics,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._api, self._instance, self._metrics, self._now_ns = api, instance, metrics, now_ns
        self._events = EventRecorder()
        self._waiting: asyncio.Queue[Posting] = asyncio.Queue(WAITING)

    def publish(self, reason: EventReason, about: ObservedProfile, note: str) -> None:
        """Queue an Event on a profile; ``note`` is a sentence."""
        regarding = profile(about.name, about.uid)
        event = Event(reason, regarding, note, OPERATOR_MANAGER, self._instance)
        posting = self._events.record(event, self._now_ns())
        self._queue([posting] if posting else [])

    async def run(self) -> None:
        """Send until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._queue_series())
            while True:
                posting = await self._waiting.get()
                await asyncio.to_thread(self._send, posting)

    async def _queue_series(self) -> None:
        while True:
            await asyncio.sleep(SERIES_S)
            self._queue(self._events.due(self._now_ns()))

    def _queue(self, postings: Iterable[Posting]) -> None:
        for posting in postings:
            try:
                self._waiting.put_nowait(posting)
            except asyncio.QueueFull:
                self._metrics.event("dropped")

    def _send(self, posting: Posting) -> None:
        try:
            self._write(posting)
        except ApiError as error:
            self._metrics.event("failed")
            _log.warning("Event %s was not written: %s", posting.body["reason"], error)
        else:
            self._metrics.event("posted")

    def _write(self, posting: Posting) -> None:
        if posting.patch is not None:
            try:
                self._api.merge("Event", posting.name, posting.namespace, posting.patch)
            except ApiError as error:
                if error.status != NOT_FOUND:
                    raise
            else:
                return
        try:
            self._api.create(posting.body)
        except ApiError as error:
            if error.status != CONFLICT:  # then it was written before
                raise
