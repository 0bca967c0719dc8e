"""What an analyzer tells the others of one node's minute, and its bytes.

Bytes are a version and zlib over four of length, as much JSON, and the levels and the spreads as
doubles (little endian): some 3 KB for a node of 400 metrics.  What is missing is NaN, in JSON null.
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
from reveal_analyzer.fleet.workload import Job, Member

VERSION = 2
MAX_BYTES = 1 << 20  # unpacked; real ones are below 64 KiB
_MAX_METRICS = 4096
_DIGITS = 6
_LENGTH = 4  # bytes
_KINDS = 64  # of nodes whose names of metrics are remembered
_JSON = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False)


class SummaryError(ValueError):
    """These bytes are no summary; the text says why."""


@dataclass(frozen=True)
class Summary:
    """A node in a minute (of its own clock, since the epoch).

    ``kind`` is its class, "" where that is not known.  ``levels`` and ``spreads`` are one
    number a name of what can hurt, in base units, NaN where missing; ``activity`` the levels of
    all else that mattered.  ``workload`` is what it worked for, ``facts`` how it is set up.
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
    jobs: Mapping[str, Job] = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)

    def level(self, name: str) -> float:
        """The level of a metric; NaN where there is none."""
        if name in self.activity:
            return self.activity[name]
        return float(self.levels[self.names.index(name)]) if name in self.names else math.nan


def encode(summary: Summary) -> bytes:
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
    """The summary; ``None`` for one of another version; raises ``SummaryError`` for neither."""
    if not data:
        raise SummaryError("it is empty")
    if data[0] != VERSION:
        return None
    try:
        unpacker = zlib.decompressobj()
        body = unpacker.decompress(data[1:], MAX_BYTES)
        if unpacker.unconsumed_tail or not unpacker.eof:
            raise SummaryError(f"it is cut off, or has over {MAX_BYTES} bytes")
        ends = _LENGTH + int.from_bytes(body[:_LENGTH], "little")
        row = json.loads(body[_LENGTH:ends])
    except (zlib.error, ValueError, RecursionError) as error:
        raise SummaryError(f"it cannot be read: {error}") from None
    return _made(row, body[ends:])


def _made(row: object, vectors: bytes) -> Summary:
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
                _known(activity), _texts(workload),
                {name: _job(job) for name, job in jobs.items()},
                dict(zip(facts, _texts(list(facts.values())), strict=True)),
            )  # fmt: skip
    raise SummaryError("it lacks something, or holds what does not belong there")


def _numbers(values: Iterable[float]) -> list[float | None]:
    """As JSON has them: whole ones as they are, others to six digits, missing ones null."""
    return [
        None if not math.isfinite(value)
        else int(value) if value == int(value)
        else float(f"{value:.{_DIGITS}g}")
        for value in values
    ]  # fmt: skip


def _numbered(levels: Mapping[str, float]) -> dict[str, float | None]:
    return dict(zip(levels, _numbers(levels.values()), strict=True))


def _shortened(values: Floats) -> Floats:
    """As they are sent: whole numbers whole, others in single precision, infinite ones missing.

    What single precision leaves zero takes hardly a byte; numbers beyond its range are whole.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        single = values.astype(np.float32)
    sent = np.where(values == np.rint(values), values, single).astype("<f8")
    sent[np.isinf(sent)] = np.nan
    return sent


def _vectors(data: bytes, width: int) -> tuple[Floats, Floats]:
    """Levels and spreads of so many metrics."""
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


def _texts(values: list[Any]) -> tuple[str, ...]:
    if not all(isinstance(value, str) for value in values):
        raise SummaryError("a text is none")
    return tuple(values)


def _job_row(job: Job) -> dict[str, Any]:
    members = [[one.kind, one.namespace, one.name, one.uid] for one in job.members]
    return {"members": members, "count": job.count, "levels": _numbered(job.levels)}


def _job(row: object) -> Job:
    match row:
        case {"members": list(members), "count": int(count), "levels": dict(levels)}:
            return Job(tuple(_member(one) for one in members), count, _known(levels))
    raise SummaryError("a job lacks something")


def _member(row: object) -> Member:
    match row:
        case [str(kind), str(namespace), str(name), str(uid)]:
            return Member(kind, namespace, name, uid)
    raise SummaryError(f"{ascii(row)[:80]} is not a subject")
