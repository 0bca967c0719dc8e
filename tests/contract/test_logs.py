"""The format of log lines is the same in all processes."""

from __future__ import annotations

import argparse
import json
import logging
import re
from collections.abc import Iterator

import pytest

from reveal_contract.runtime import logs


@pytest.fixture(autouse=True)
def put_back() -> Iterator[None]:
    handlers, level = logging.root.handlers[:], logging.root.level
    yield
    logging.root.handlers[:], logging.root.level = handlers, level


def test_a_json_line_has_time_level_logger_and_message(capsys: pytest.CaptureFixture[str]) -> None:
    logs.set_up(logs.JSON)
    logging.getLogger("part").warning("%s gave\n%d", "é", 5)
    (line,) = capsys.readouterr().err.splitlines()
    row = json.loads(line)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", row.pop("time"))
    assert row == {"severity": "warning", "logger": "part", "message": "é gave\n5"}


def test_a_json_line_has_the_extra_fields_and_the_exception(
    capsys: pytest.CaptureFixture[str],
) -> None:
    logs.set_up(logs.JSON)
    try:
        raise ValueError("bad")
    except ValueError:
        logging.getLogger("part").exception("oh", extra={"object": {"kind": "Node", "name": "n1"}})
    row = json.loads(capsys.readouterr().err)
    assert row["object"] == {"kind": "Node", "name": "n1"}
    assert row["error"].splitlines()[-1] == "ValueError: bad"


def test_the_text_format_is_readable(capsys: pytest.CaptureFixture[str]) -> None:
    logs.set_up()
    logging.getLogger("part").info("hello")
    assert capsys.readouterr().err.endswith(" INFO part: hello\n")


@pytest.mark.parametrize("style", [logs.TEXT, logs.JSON])
def test_a_path_in_a_line_is_printable(style: str, capsys: pytest.CaptureFixture[str]) -> None:
    logs.set_up(style)
    logging.getLogger("part").info("%s: gone\nretrying", "/a/caf\udce9\x1b[1m")
    written = capsys.readouterr().err
    message = json.loads(written)["message"] if style == logs.JSON else written.rstrip("\n")
    assert message.endswith("/a/caf\\xe9\\x1b[1m: gone\nretrying")


@pytest.mark.parametrize("style", [logs.TEXT, logs.JSON])
def test_an_uncaught_exception_is_logged_in_the_same_format(
    style: str, capsys: pytest.CaptureFixture[str]
) -> None:
    logs.set_up(style)
    logs.last_words("it ends")
    (line,) = capsys.readouterr().err.splitlines()
    assert (json.loads(line)["message"] if style == logs.JSON else line) == "it ends"


def test_the_flag_takes_only_the_two_formats() -> None:
    parser = argparse.ArgumentParser()
    logs.add_flag(parser)
    assert parser.parse_args([]).log_format == "text"
    assert parser.parse_args(["--log-format", "json"]).log_format == "json"
    with pytest.raises(SystemExit):
        parser.parse_args(["--log-format", "xml"])
