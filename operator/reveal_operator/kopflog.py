"""kopf's lines in the log, in the form of ours."""

from __future__ import annotations

import logging

_KOPF = "kopf"
_REQUESTS = "kopf._cogs.clients"  # where its errors of requests come from
_NO_SIGNALS = "OS signals are ignored"  # as it is not in the main thread: they are ours


class Tidy(logging.Filter):
    """Objects under the key that our lines have; refused requests without a traceback.

    What the API server refuses it explains in a sentence; where kopf was then says nothing more.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name.partition(".")[0] != _KOPF:
            return True
        if str(record.msg).startswith(_NO_SIGNALS):
            return False
        if (about := getattr(record, "k8s_ref", None)) is not None:
            record.object = about
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and type(error).__module__.startswith((_REQUESTS, "aiohttp")):
            record.exc_info = record.exc_text = None
        return True


def tidy() -> None:
    """Set up once the root logger has its handlers."""
    for handler in logging.root.handlers:
        handler.addFilter(Tidy())
    # at INFO it tells of every login and activity
    level = logging.root.level
    logging.getLogger(_KOPF).setLevel(level if level <= logging.DEBUG else logging.WARNING)
