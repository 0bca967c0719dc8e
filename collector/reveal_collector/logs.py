"""Log lines: plain for people, JSON for machines."""

from __future__ import annotations

import json
import logging
import sys
import time


class JsonLines(logging.Formatter):
    """One JSON object a line: time, level, logger, message, and the traceback if any."""

    def format(self, record: logging.LogRecord) -> str:
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        row = {
            "time": f"{moment}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            row["error"] = self.formatException(record.exc_info)
        return json.dumps(row, ensure_ascii=False)


def set_up(level: int = logging.INFO) -> None:
    """Log to standard error, plain on a terminal and JSON elsewhere."""
    handler = logging.StreamHandler(sys.stderr)
    if sys.stderr.isatty():
        handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    else:
        handler.setFormatter(JsonLines())
    logging.basicConfig(level=level, handlers=[handler], force=True)
