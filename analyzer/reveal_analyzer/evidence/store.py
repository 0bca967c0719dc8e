"""Where the samples of findings are kept: Redis, or a folder.

Both keep the newest ``MOST_FINDINGS`` for a limited time.  Methods raise ``OSError``, or what
redis-py raises, where nothing can be kept.  A Redis that is nearly full is left to the stream.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

import redis

from reveal_analyzer.evidence.packing import packed, unpacked
from reveal_analyzer.stream.redis_memory import refuse_when_full
from reveal_analyzer.telemetry.limited_values import Limited, get_all_fields, get_string
from reveal_contract import foreign_json
from reveal_contract.names import evidence_index_key, evidence_key, evidence_unfinished_key

MOST_FINDINGS = 500
_NAME = re.compile(r"[a-z0-9-]{1,128}\Z")
_SUFFIX, _UNFINISHED = ".rvl", ".unfinished"
_TEMPORARY = ".new"
_MOST_BYTES = 1 << 20  # of a value in Redis: the largest ``evidence.maxBytes``
_ABANDONED_SECONDS = 600.0  # since a temporary file was written, by an analyzer that was killed


class EvidenceStore(Protocol):
    """Keeps a recording for each finding, by the id of the finding."""

    kind: str

    def encoded(self, recording: bytes) -> bytes:
        """Return a recording as this store keeps it."""

    def put(self, name: str, data: bytes, unfinished: Mapping[str, Any] | None) -> None:
        """Keep an encoded recording; ``unfinished`` is the finding if samples are still to come."""

    def get(self, name: str) -> bytes | None:
        """Return a recording, None if there is none; raises ``RecordingError`` for damage."""

    def unfinished(self) -> dict[str, Mapping[str, Any]]:
        """Return the findings whose samples are not complete, by name."""

    def close(self) -> None:
        """Release what is open."""


def load_evidence(store: EvidenceStore, name: str) -> bytes:
    """Return the recording of a finding; raises ``KeyError`` if there is none."""
    recording = store.get(name) if _NAME.match(name) else None
    if recording is None:
        raise KeyError(name)
    return recording


class RedisEvidence:
    """Recordings as strings, packed; a sorted set has the time of each last write."""

    kind = "Redis"

    def __init__(
        self,
        client: redis.Redis,
        profile: str,
        retention_seconds: int,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._client, self._profile, self._clock = client, profile, clock
        self._retention = retention_seconds
        self._index = evidence_index_key(profile)
        self._unfinished = evidence_unfinished_key(profile)

    def encoded(self, recording: bytes) -> bytes:
        return packed(recording)

    def put(self, name: str, data: bytes, unfinished: Mapping[str, Any] | None) -> None:
        refuse_when_full(self._client)
        now = self._clock()
        with self._client.pipeline(transaction=False) as pipe:
            pipe.set(evidence_key(self._profile, name), data, ex=self._retention)
            pipe.zadd(self._index, {name: now})
            if unfinished is None:
                pipe.hdel(self._unfinished, name)
            else:
                pipe.hset(self._unfinished, name, json.dumps(unfinished))
            pipe.zrangebyscore(self._index, "-inf", now - self._retention)
            pipe.zrange(self._index, 0, -MOST_FINDINGS - 1)
            for key in (self._index, self._unfinished):
                pipe.expire(key, self._retention)
            *_, old, excess, _, _ = pipe.execute()
        self._drop({*old, *excess})

    def get(self, name: str) -> bytes | None:
        data = get_string(self._client, evidence_key(self._profile, name), _MOST_BYTES)
        return unpacked(data) if isinstance(data, bytes) else None

    def unfinished(self) -> dict[str, Mapping[str, Any]]:
        rows = get_all_fields(self._client, self._unfinished, _MOST_BYTES)
        return {name.decode(errors="replace"): _row(row) for name, row in rows.items()}

    def close(self) -> None:
        self._client.close()

    def _drop(self, names: set[bytes]) -> None:
        if not names:
            return
        texts = [name.decode(errors="replace") for name in names]
        with self._client.pipeline(transaction=False) as pipe:
            pipe.delete(*(evidence_key(self._profile, name) for name in texts))
            pipe.zrem(self._index, *texts)
            pipe.hdel(self._unfinished, *texts)
            pipe.execute()


class FolderEvidence:
    """Recordings as files, ``NAME.rvl``, in a folder that several analyzers may share."""

    kind = "Folder"

    def __init__(
        self, folder: Path, retention_seconds: int, clock: Callable[[], float] = time.time
    ) -> None:
        self._folder, self._retention, self._clock = folder, retention_seconds, clock

    def encoded(self, recording: bytes) -> bytes:
        return recording

    def put(self, name: str, data: bytes, unfinished: Mapping[str, Any] | None) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._write(name + _SUFFIX, data)
        if unfinished is None:
            (self._folder / (name + _UNFINISHED)).unlink(missing_ok=True)
        else:
            self._write(name + _UNFINISHED, json.dumps(unfinished).encode())
        self._trim()

    def get(self, name: str) -> bytes | None:
        try:
            return (self._folder / (name + _SUFFIX)).read_bytes()
        except FileNotFoundError:
            return None

    def unfinished(self) -> dict[str, Mapping[str, Any]]:
        files = self._folder.glob(f"*{_UNFINISHED}")
        return {file.stem: _row(file.read_bytes()) for file in files}

    def close(self) -> None:
        pass

    def _write(self, name: str, data: bytes) -> None:
        """Write a file as a whole: a reader sees the earlier one or this."""
        # no process id: it is 1 in every container that shares the folder
        temporary = self._folder / f".{name}.{uuid4().hex}{_TEMPORARY}"
        try:
            temporary.write_bytes(data)
            temporary.replace(self._folder / name)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise

    def _trim(self) -> None:
        files = sorted((_modified_s(file), file) for file in self._folder.glob(f"*{_SUFFIX}"))
        oldest = self._clock() - self._retention
        excess = len(files) - MOST_FINDINGS
        for index, (modified_s, file) in enumerate(files):
            if index < excess or modified_s < oldest:
                file.unlink(missing_ok=True)
                file.with_suffix(_UNFINISHED).unlink(missing_ok=True)
        for file in self._folder.glob(f".*{_TEMPORARY}"):
            if _modified_s(file) < self._clock() - _ABANDONED_SECONDS:
                file.unlink(missing_ok=True)


def _modified_s(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except FileNotFoundError:  # another analyzer deleted it
        return 0.0


def _row(data: Limited) -> Mapping[str, Any]:
    """Return a JSON object; an empty one for anything else."""
    if not isinstance(data, bytes):
        return {}
    try:
        row = foreign_json.loads(data)
    except ValueError:
        return {}
    return row if isinstance(row, dict) else {}
