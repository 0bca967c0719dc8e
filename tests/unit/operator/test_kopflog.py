"""What kopf logs comes out in the form of our own lines."""

from __future__ import annotations

import logging
from typing import Any

from kopf._cogs.clients.errors import APIForbiddenError

from reveal_operator.kopflog import REMIND_S, Tidy


def record(message: str, name: str = "kopf.objects", **more: Any) -> logging.LogRecord:
    made = logging.LogRecord(name, logging.ERROR, "", 0, message, (), more.pop("exc_info", None))
    vars(made).update(more)
    return made


def test_objects_have_our_key() -> None:
    about = {"kind": "RevealProfile", "name": "p"}
    line = record("hello", k8s_ref=about)
    assert Tidy().filter(line)
    assert vars(line)["object"] == about


def test_what_the_api_server_refuses_needs_no_traceback_defects_do() -> None:
    refusal, defect = APIForbiddenError("no", status=403, headers={}), RuntimeError("oh")
    for error, kept in ((refusal, False), (defect, True)):
        line = record("failed", exc_info=(type(error), error, None))
        assert Tidy().filter(line)
        assert bool(line.exc_info) is kept


def test_retries_are_told_once_a_minute() -> None:
    now = 0.0
    tidy = Tidy(lambda: now)
    told = "Request attempt #1/5 failed; will retry: GET /api -> refused"
    assert tidy.filter(record(told))
    assert not tidy.filter(record(told))
    assert tidy.filter(record("Something else"))
    assert tidy.filter(record(told, name="reveal_operator.app"))
    now += REMIND_S
    assert tidy.filter(record(told))


def test_signals_are_ours() -> None:
    told = "OS signals are ignored: running not in the main thread."
    assert not Tidy().filter(record(told, name="kopf._core.reactor.running"))
