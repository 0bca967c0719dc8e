"""Log lines of every process: text for people, JSON for log collectors."""

from __future__ import annotations

import argparse
import json
import logging
import sys
import time
from typing import Any

from reveal_contract.foreign_names import printable

log = logging.getLogger(__name__)

TEXT, JSON = "text", "json"
_TEXT_FORM = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class TextLines(logging.Formatter):
    """A line for people; names in it, such as paths, are printable."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        return _printable_lines(super().formatMessage(record))


class JsonLines(logging.Formatter):
    """One JSON object a line: time (RFC 3339, UTC), severity, logger, message.

    Where a record has them, also ``object``, what the line is about
    (``log.info(..., extra={"object": {"kind": "Node", "name": "n1"}})``), and ``error``, the
    traceback.
    """

    def format(self, record: logging.LogRecord) -> str:
        return json.dumps(self.row(record), ensure_ascii=False, default=str)

    def row(self, record: logging.LogRecord) -> dict[str, Any]:
        """Return the line as a mapping."""
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        row: dict[str, Any] = {
            "time": f"{moment}.{int(record.msecs):03d}Z",
            "severity": record.levelname.lower(),
            "logger": record.name,
            "message": _printable_lines(record.getMessage()),
        }
        if (about := getattr(record, "object", None)) is not None:
            row["object"] = about
        if record.exc_info:
            row["error"] = self.formatException(record.exc_info)
        return row


def _printable_lines(text: str) -> str:
    return "\n".join(map(printable, text.split("\n")))


def add_flag(parser: argparse.ArgumentParser) -> None:
    """Add ``--log-format``, the same for every process."""
    parser.add_argument(
        "--log-format",
        choices=(TEXT, JSON),
        default=TEXT,
        help="format of the log on standard error",
    )


def set_up(style: str = TEXT, level: int = logging.INFO) -> None:
    """Log to standard error only."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if style == JSON else TextLines(_TEXT_FORM))
    logging.basicConfig(level=level, handlers=[handler], force=True)


def last_words(sentence: str) -> None:
    """Write why the process ends to standard error; as JSON if the log is JSON."""
    if any(isinstance(handler.formatter, JsonLines) for handler in logging.root.handlers):
        log.error("%s", sentence)
    else:
        print(sentence, file=sys.stderr)  # noqa: T201 - to a person
