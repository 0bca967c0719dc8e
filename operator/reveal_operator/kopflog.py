"""Log lines of kopf in the form of the operator's own."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

REMIND_S = 60.0
_KOPF = "kopf"
_REQUESTS = "kopf._cogs.clients"  # where its errors of requests come from
_NO_SIGNALS = (
    "OS signals are ignored"  # kopf is not in the main thread: the operator handles signals
)
_RETRIES = "Request attempt"


class KopfLogFilter(logging.Filter):
    """Moves objects to the key that our lines use, and removes tracebacks of refused requests.

    The API server explains a refusal in a sentence; where kopf was adds nothing.  Of the retries of
    requests one line a minute passes: each watch of kopf logs all of them.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock, self._logged_s = clock, -REMIND_S

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name.partition(".")[0] != _KOPF:
            return True
        message = str(record.msg)
        if message.startswith(_NO_SIGNALS) or (
            message.startswith(_RETRIES) and not self._is_time()
        ):
            return False
        if (about := getattr(record, "k8s_ref", None)) is not None:
            record.object = about
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and type(error).__module__.startswith((_REQUESTS, "aiohttp")):
            record.exc_info = record.exc_text = None
        return True

    def _is_time(self) -> bool:
        now = self._clock()
        if now - self._logged_s < REMIND_S:
            return False
        self._logged_s = now
        return True


def filter_kopf_logs() -> None:
    """Add the filter, once the root logger has its handlers."""
    for handler in logging.root.handlers:
        handler.addFilter(KopfLogFilter())
    # at INFO kopf logs every login and activity
    level = logging.root.level
    logging.getLogger(_KOPF).setLevel(level if level <= logging.DEBUG else logging.WARNING)
