"""kopf's lines in the log, in the form of ours."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

REMIND_S = 60.0
_KOPF = "kopf"
_REQUESTS = "kopf._cogs.clients"  # where its errors of requests come from
_NO_SIGNALS = "OS signals are ignored"  # as it is not in the main thread: they are ours
_RETRIES = "Request attempt"


class Tidy(logging.Filter):
    """Objects under the key that our lines have; refused requests without a traceback.

    What the API server refuses it explains in a sentence; where kopf was then says nothing more.
    Of the retries of its requests, one in a minute: each of its watches tells all of them.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock, self._told = clock, -REMIND_S

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name.partition(".")[0] != _KOPF:
            return True
        said = str(record.msg)
        if said.startswith(_NO_SIGNALS) or (said.startswith(_RETRIES) and not self._is_time()):
            return False
        if (about := getattr(record, "k8s_ref", None)) is not None:
            record.object = about
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and type(error).__module__.startswith((_REQUESTS, "aiohttp")):
            record.exc_info = record.exc_text = None
        return True

    def _is_time(self) -> bool:
        now = self._clock()
        if now - self._told < REMIND_S:
            return False
        self._told = now
        return True


def tidy() -> None:
    """Set up once the root logger has its handlers."""
    for handler in logging.root.handlers:
        handler.addFilter(Tidy())
    # at INFO it tells of every login and activity
    level = logging.root.level
    logging.getLogger(_KOPF).setLevel(level if level <= logging.DEBUG else logging.WARNING)
