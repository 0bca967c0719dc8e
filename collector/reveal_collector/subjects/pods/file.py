"""Pods from a file: the output of ``kubectl get pods -o json`` (or YAML), read again on change.

For air-gapped nodes, where another program writes the file, and for recorded trees of hosts.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable
from pathlib import Path

from reveal_collector.subjects.pods.podlist import PodIndex, pods_of

log = logging.getLogger(__name__)

_POLL_SECONDS = 1.0
_MAX_BYTES = 64 << 20


class FilePods:
    """The pods of ``node`` in a file; all pods if the file names no nodes."""

    def __init__(self, path: Path, node: str) -> None:
        self.health_error, self.is_listed = "", False
        self._path, self._node = path, node
        self._index = PodIndex()
        self._loaded: tuple[int, int, int] | None = None
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
        """Read the file if it changed; keep the last list if the file cannot be used."""
        try:
            status = self._path.stat()
            version = (status.st_mtime_ns, status.st_size, status.st_ino)
            if version == self._loaded:
                return
            pods = pods_of(_parsed(self._path))
        except (OSError, ValueError, RecursionError) as cause:
            self._fail(cause)
            return
        self._loaded, self.health_error = version, ""
        self._index = PodIndex(pod for pod in pods if pod.node in ("", self._node))
        self.is_listed = True
        if self._changed is not None:
            self._changed()

    def _fail(self, cause: Exception) -> None:
        error = f"pods: {self._path} cannot be used, the last list is kept: {cause}"
        if error != self.health_error:
            log.warning("%s", error)
        self.health_error = error

    def _run(self) -> None:
        while not self._stopping.wait(_POLL_SECONDS):
            self.poll()


def _parsed(path: Path) -> object:
    with path.open("rb") as file:
        data = file.read(_MAX_BYTES)
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
