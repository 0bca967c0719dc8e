"""A source of pods that looks once a second whether its files changed."""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from pathlib import Path

from reveal_collector.subjects.pods.podlist import Pod, PodIndex

log = logging.getLogger(__name__)

_POLL_SECONDS = 1.0


class PolledPods(ABC):
    """Reads pods below ``path`` in a thread; what cannot be read keeps the last list."""

    def __init__(self, path: Path) -> None:
        self.health_error, self.is_listed = "", False
        self._path = path
        self._index = PodIndex()
        self._changed: Callable[[], None] | None = None
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def index(self) -> PodIndex:
        return self._index

    def start(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self.poll()
        self._stopping.clear()
        self._thread = threading.Thread(target=self._run, name="reveal-pods", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(1.0)
            self._thread = None

    def poll(self) -> None:
        """Read the pods if they changed."""
        try:
            pods = self._read()
        except (OSError, ValueError, RecursionError) as cause:
            self._fail(cause)
            return
        self.health_error = ""
        if pods is None:
            return
        self._index = PodIndex(pods)
        self.is_listed = True
        if self._changed is not None:
            self._changed()

    @abstractmethod
    def _read(self) -> Iterable[Pod] | None:
        """Return the pods, None if they did not change; raises ``OSError`` or ``ValueError``."""

    def _fail(self, cause: Exception) -> None:
        error = f"pods: {self._path} cannot be used, the last list is kept: {cause}"
        if error != self.health_error:
            log.warning("%s", error)
        self.health_error = error

    def _run(self) -> None:
        while not self._stopping.wait(_POLL_SECONDS):
            self.poll()
