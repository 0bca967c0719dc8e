"""Where the history of nodes is kept: Redis, or a folder; each hour of a node by itself.

Methods raise ``OSError``, or what redis-py raises, where nothing can be kept or read.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

import redis

from reveal_analyzer.stream.redis_memory import refuse_when_full
from reveal_contract.names import history_key

MOST_HOUR_BYTES = 16 << 20  # of a node
_SUFFIX = ".rvh"
_HOUR_S = 3600


class HistoryStore(Protocol):
    """Keeps the parts of each hour of a node; an hour is counted since the epoch."""

    def append(self, node: str, hour: int, part: bytes) -> int:
        """Add a part to an hour; return how many bytes the hour had before."""

    def read(self, node: str, hour: int) -> bytes:
        """Return the parts of an hour, in the order in which they were added; b"" for none."""

    def close(self) -> None:
        """Release what is open."""


class RedisHistory:
    """An hour of a node as a string, which ends ``hours`` after its last part."""

    def __init__(self, client: redis.Redis, profile: str, hours: int) -> None:
        self._client, self._profile, self._seconds = client, profile, hours * _HOUR_S

    def append(self, node: str, hour: int, part: bytes) -> int:
        refuse_when_full(self._client)
        key = history_key(self._profile, node, hour)
        before: Any = self._client.strlen(key)
        _refuse_too_large(node, before + len(part))
        with self._client.pipeline(transaction=False) as pipe:
            pipe.append(key, part)
            pipe.expire(key, self._seconds)
            pipe.execute()
        return int(before)

    def read(self, node: str, hour: int) -> bytes:
        # what is longer was not written by ``append``; the parts before its end can be read
        data: Any = self._client.getrange(
            history_key(self._profile, node, hour), 0, MOST_HOUR_BYTES - 1
        )
        return bytes(data)

    def close(self) -> None:
        self._client.close()


class FolderHistory:
    """An hour of a node as a file, in a folder that several analyzers may share."""

    def __init__(self, folder: Path, hours: int, clock: Callable[[], float] = time.time) -> None:
        self._folder, self._seconds, self._clock = folder, hours * _HOUR_S, clock
        self._trimmed_s = 0.0

    def append(self, node: str, hour: int, part: bytes) -> int:
        file = self._file(node, hour)
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("ab", buffering=0) as opened:
            end = os.fstat(opened.fileno()).st_size
            _refuse_too_large(node, end + len(part))
            if opened.write(part) < len(part):  # the volume is full
                opened.truncate(end)  # what follows a part that was cut is not read
                raise OSError(f"{file}: no room for {len(part)} bytes")
        self._trim()
        return end

    def read(self, node: str, hour: int) -> bytes:
        try:
            return self._file(node, hour).read_bytes()
        except FileNotFoundError:
            return b""

    def close(self) -> None:
        pass

    def _file(self, node: str, hour: int) -> Path:
        # a dot: no name of a node is that of the folder itself or of the one above
        return self._folder / f"node.{quote(node, safe='')}" / f"{hour}{_SUFFIX}"

    def _trim(self) -> None:
        """Delete the hours that are too old, once an hour."""
        now = self._clock()
        if now - self._trimmed_s < _HOUR_S:
            return
        self._trimmed_s = now
        for file in self._folder.glob(f"node.*/*{_SUFFIX}"):
            try:
                if file.stat().st_mtime < now - self._seconds:
                    file.unlink()
            except FileNotFoundError:  # another analyzer deleted it
                continue


def _refuse_too_large(node: str, length: int) -> None:
    if length > MOST_HOUR_BYTES:
        raise OSError(f"an hour of {node} has over {MOST_HOUR_BYTES >> 20} MiB")
