"""Pods from a file: the output of ``kubectl get pods -o json`` (or YAML), read again on change.

For air-gapped nodes, where something else writes the file, and for trees of other hosts.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable
from pathlib import Path

from reveal_collector.subjects.pods.podlist import PodIndex, pods_of

log = logging.getLogger(__name__)

_LOOK_SECONDS = 1.0
_LARGEST = 64 << 20


class FilePods:
    """The pods of ``node`` in a file; all of them where the file names no nodes."""

    def __init__(self, path: Path, node: str) -> None:
        self.health_error = ""
        self._path, self._node = path, node
        self._index = PodIndex()
        self._seen: tuple[int, int, int] | None = None
        self._changed: Callable[[], None] | None = None
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def index(self) -> PodIndex:
        return self._index

    def start(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self.look()
        self._stopping.clear()
        self._thread = threading.Thread(target=self._follow, name="reveal-pods", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(1.0)
            self._thread = None

    def look(self) -> None:
        """Read the file if it is another one than before; a bad one leaves the last list."""
        try:
            seen = self._path.stat()
            mark = (seen.st_mtime_ns, seen.st_size, seen.st_ino)
            if mark == self._seen:
                return
            pods = pods_of(_parsed(self._path))
        except (OSError, ValueError, RecursionError) as error:
            self._fail(error)
            return
        self._seen, self.health_error = mark, ""
        self._index = PodIndex(pod for pod in pods if pod.node in ("", self._node))
        if self._changed is not None:
            self._changed()

    def _fail(self, error: Exception) -> None:
        health_error = f"pods: {self._path} cannot be used, the last list is kept: {error}"
        if health_error != self.health_error:
            log.warning("%s", health_error)
        self.health_error = health_error

    def _follow(self) -> None:
        while not self._stopping.wait(_LOOK_SECONDS):
            self.look()


def _parsed(path: Path) -> object:
    with path.open("rb") as file:
        data = file.read(_LARGEST)
    if path.suffix in (".yaml", ".yml"):
        try:
            import yaml  # noqa: PLC0415 - a collector that reads no YAML needs no parser of it
        except ImportError:
            raise ValueError("YAML needs the package pyyaml; JSON does not") from None
        try:
            return yaml.safe_load(data)
        except yaml.YAMLError as error:
            raise ValueError(str(error).replace("\n", " ")) from None
    return json.loads(data)
