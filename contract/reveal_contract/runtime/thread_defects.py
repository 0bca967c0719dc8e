"""The end of a process whose thread ended by a defect: half a process would be silent for ever."""

from __future__ import annotations

import logging
import os
import threading

log = logging.getLogger(__name__)

EXIT_STATUS = 70  # EX_SOFTWARE of sysexits.h


def end_on_defects() -> None:
    """End this process when an exception ends a thread; who started it starts another."""
    threading.excepthook = _end


def _end(defect: threading.ExceptHookArgs) -> None:
    if issubclass(defect.exc_type, SystemExit):  # as Python's own hook has it
        return
    name = defect.thread.name if defect.thread is not None else "?"
    exception = defect.exc_value or defect.exc_type()
    log.critical("the process ends, as a defect ended thread %s", name, exc_info=exception)
    logging.shutdown()
    os._exit(EXIT_STATUS)
