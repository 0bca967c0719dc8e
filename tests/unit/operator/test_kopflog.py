"""kopf's log records are written in the format of Reveal's own."""

from __future__ import annotations

import logging
from typing import Any

from kopf._cogs.clients.errors import APIForbiddenError

from reveal_operator.kopflog import REMIND_S, KopfLogFilter


def record(message: str, name: str = "kopf.objects", **more: Any) -> logging.LogRecord:
    result = logging.LogRecord(name, logging.ERROR, "", 0, message, (), more.pop("exc_info", None))
    vars(result).update(more)
    return result


def test_objects_have_our_key() -> None:
    about = {"kind": "RevealProfile", "name": "p"}
    line = record("hello", k8s_ref=about)
    assert KopfLogFilter().filter(line)
    assert vars(line)["object"] == about


def test_only_defects_have_a_traceback() -> None:
    refusal, defect = APIForbiddenError("no", status=403, headers={}), RuntimeError("oh")
    for error, kept in ((refusal, False), (defect, True)):
        line = record("failed", exc_info=(type(error), error, None))
        assert KopfLogFilter().filter(line)
        assert bool(line.exc_info) is kept


def test_retries_are_logged_once_a_minute() -> None:
    now = 0.0
    tidy = KopfLogFilter(lambda: now)
    message = "Request attempt #1/5 failed; will retry: GET /api -> refused"
    assert tidy.filter(record(message))
    assert not tidy.filter(record(message))
    assert tidy.filter(record("Something else"))
    assert tidy.filter(record(message, name="reveal_operator.app"))
    now += REMIND_S
    assert tidy.filter(record(message))


def test_the_warning_about_signals_is_dropped() -> None:
    message = "OS signals are ignored: running not in the main thread."
    assert not KopfLogFilter().filter(record(message, name="kopf._core.reactor.running"))
