"""Pods from a file: the output of ``kubectl get pods -o json`` (or YAML), read again on change.

For air-gapped nodes, where another program writes the file, and for recorded trees of hosts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from reveal_collector.subjects.pods.podlist import Pod, pods_of
from reveal_collector.subjects.pods.polled import PolledPods

_MAX_BYTES = 64 << 20


class FilePods(PolledPods):
    """The pods of ``node`` in a file; all pods if the file names no nodes."""

    def __init__(self, path: Path, node: str) -> None:
        super().__init__(path)
        self._node = node
        self._loaded: tuple[int, int, int] | None = None

    def _read(self) -> Iterable[Pod] | None:
        status = self._path.stat()
        version = (status.st_mtime_ns, status.st_size, status.st_ino)
        if version == self._loaded:
            return None
        pods = pods_of(_parsed(self._path))
        self._loaded = version
        return [pod for pod in pods if pod.node in ("", self._node)]


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
