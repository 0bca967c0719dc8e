"""Summary of one node's minute, and its encoding.

The bytes are a version, and then, compressed with zlib, the length of the JSON in four bytes, the
JSON, and levels and spreads as little-endian doubles: about 3 KB for a node of 400 metrics.  A
missing value is NaN, and null in JSON.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from reveal_analyzer.arrays import Floats
from reveal_analyzer.fleet.workload import JobMember, JobPart
from reveal_contract import foreign_json

VERSION = 2
MAX_BYTES = 1 << 20  # unpacked; real ones are below 64 KiB
_MAX_METRICS = 4096
_DIGITS = 6
_LENGTH = 4  # bytes
_KINDS = 64  # of nodes whose names of metrics are remembered
_JSON = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False)


class SummaryError(ValueError):
    """These bytes are not a summary; the message says why."""


@dataclass(frozen=True)
class Summary:
    """A node in one minute, counted by its own clock since the epoch.

    ``kind`` is its class, "" if unknown.  ``levels`` and ``spreads`` have one number for each of
    ``names``, the metrics that can do harm, in base units, NaN if missing.  ``activity`` holds
    the significant levels of the others, and NaN for those that were not read.  ``workload`` names
    the jobs it worked for, ``facts`` its settings.
    """

    node: str
    minute: int
    seconds: int
    kind: str
    names: tuple[str, ...]
    levels: Floats
    spreads: Floats
    activity: Mapping[str, float] = field(default_factory=dict)
    workload: tuple[str, ...] = ()
    jobs: Mapping[str, JobPart] = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)

    def level(self, name: str) -> float:
        """Return the level of a metric; NaN if there is none."""
        if name in self.activity:
            return self.activity[name]
        return float(self.levels[self.names.index(name)]) if name in self.names else math.nan


def encode(summary: Summary) -> bytes:
    """Return the bytes of a summary."""
    row = {
        "node": summary.node,
        "minute": summary.minute,
        "seconds": summary.seconds,
        "kind": summary.kind,
        "names": _joined(summary.names),
        "activity": _numbered(summary.activity),
        "workload": summary.workload,
        "jobs": {name: _job_row(job) for name, job in summary.jobs.items()},
        "facts": dict(summary.facts),
    }
    head = _JSON.encode(row).encode(errors="replace")
    vectors = _shortened(np.concatenate([summary.levels, summary.spreads])).tobytes()
    packed = zlib.compress(len(head).to_bytes(_LENGTH, "little") + head + vectors, 1)
    return bytes([VERSION]) + packed


def decode(data: bytes) -> Summary | None:
    """Return the summary of these bytes; ``None`` if it has another version.

    Raises ``SummaryError`` if they are not a summary.
    """
    if not data:
        raise SummaryError("it is empty")
    if data[0] != VERSION:
        return None
    try:
        unpacker = zlib.decompressobj()
        body = unpacker.decompress(data[1:], MAX_BYTES)
        if unpacker.unconsumed_tail or not unpacker.eof:
            raise SummaryError(f"it is truncated, or longer than {MAX_BYTES} bytes")
        ends = _LENGTH + int.from_bytes(body[:_LENGTH], "little")
        row = foreign_json.loads(body[_LENGTH:ends])
    except (zlib.error, ValueError) as error:
        raise SummaryError(f"it cannot be read: {error}") from None
    return _from_row(row, body[ends:])


def _from_row(row: object, vectors: bytes) -> Summary:
    match row:
        case {
            "node": str(node), "minute": int(minute), "seconds": int(seconds), "kind": str(kind),
            "names": str(names), "activity": dict(activity), "workload": list(workload),
            "jobs": dict(jobs), "facts": dict(facts),
        }:  # fmt: skip
            known = _split(names)
            levels, spreads = _vectors(vectors, len(known))
            return Summary(
                node, minute, seconds, kind, known, levels, spreads,
                _activity(activity), _texts(workload),
                {name: _job(job) for name, job in jobs.items()},
                dict(zip(facts, _texts(list(facts.values())), strict=True)),
            )  # fmt: skip
    raise SummaryError("a field is missing or has another type")


def _numbers(values: Iterable[float]) -> list[float | None]:
    """Return numbers for JSON: integers exactly, others with six digits, missing ones as None."""
    return [
        None if not math.isfinite(value)
        else int(value) if value == int(value)
        else float(f"{value:.{_DIGITS}g}")
        for value in values
    ]  # fmt: skip


def _numbered(levels: Mapping[str, float]) -> dict[str, float | None]:
    return dict(zip(levels, _numbers(levels.values()), strict=True))


def _shortened(values: Floats) -> Floats:
    """Return values as they are sent: integers exactly, others in single precision.

    The zero bytes that single precision leaves compress well; numbers beyond its range are
    integers.  Infinite values become missing.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        single = values.astype(np.float32)
    sent = np.where(values == np.rint(values), values, single).astype("<f8")
    sent[np.isinf(sent)] = np.nan
    return sent


def _vectors(data: bytes, width: int) -> tuple[Floats, Floats]:
    """Return the levels and spreads of ``width`` metrics."""
    if len(data) != 16 * width or width > _MAX_METRICS:
        raise SummaryError(f"{len(data)} bytes of levels and spreads of {width} metrics")
    values = np.frombuffer(data, "<f8").astype(np.float64)
    if np.isinf(values).any():
        raise SummaryError("a level is infinite")
    return values[:width], values[width:]


@lru_cache(maxsize=_KINDS)
def _joined(names: tuple[str, ...]) -> str:
    return " ".join(names)


@lru_cache(maxsize=_KINDS)
def _split(names: str) -> tuple[str, ...]:
    return tuple(names.split())


def _number(value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return number
    raise SummaryError(f"{ascii(value)[:80]} is not a number")


def _known(levels: dict[str, Any]) -> dict[str, float]:
    return {name: _number(value) for name, value in levels.items() if value is not None}


def _activity(levels: dict[str, Any]) -> dict[str, float]:
    return {name: math.nan if value is None else _number(value) for name, value in levels.items()}


def _texts(values: list[Any]) -> tuple[str, ...]:
    if not all(isinstance(value, str) for value in values):
        raise SummaryError("a string is expected")
    return tuple(values)


def _job_row(job: JobPart) -> dict[str, Any]:
    members = [[each.kind, each.namespace, each.name, each.uid] for each in job.members]
    return {"members": members, "count": job.count, "levels": _numbered(job.levels)}


def _job(row: object) -> JobPart:
    match row:
        case {"members": list(members), "count": int(count), "levels": dict(levels)}:
            return JobPart(tuple(_member(member) for member in members), count, _known(levels))
    raise SummaryError("a job misses a field")


def _member(row: object) -> JobMember:
    match row:
        case [str(kind), str(namespace), str(name), str(uid)]:
            return JobMember(kind, namespace, name, uid)
    raise SummaryError(f"{ascii(row)[:80]} is not a subject")
