"""What one rank of a job did in a window of ten seconds, and its form in Redis: pure.

Ranks are subjects that belong to the same job by their names, on any nodes.  Rows are JSON lists in
the order of the fields; those of an earlier version end before ``gpus``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, fields
from statistics import median
from typing import Any

from reveal_contract import foreign_json
from reveal_contract.subjects import MAX_GPUS
from reveal_contract.time_units import NS_PER_SECOND

WINDOW_S = 10
MOST_RANKS = 256  # of one node
_MOST_BYTES = 1 << 20
_MOST_TEXT = 1024
_DIGITS = 4


class RankError(ValueError):
    """A row is not that of a rank; the text says why."""


@dataclass(frozen=True, slots=True)
class LostPart:
    """A share of the time that a rank wanted, lost to one reason and one culprit ("" for none)."""

    part: str  # a name of ``ledger.LOST``
    share: float
    culprit: str


@dataclass(frozen=True, slots=True)
class Rank:
    """One rank in one window, which is counted since the epoch by the clock of its node.

    ``desired`` is the number of CPUs that it wanted, mean.  ``step_s`` is the length of its steps,
    0 where that is not known, and ``slower_percent`` by how much they are longer than those that
    were learned.  ``namespace`` is "" unless it is a pod.  ``gpus`` are those of its pod, 0 where
    they are not known.
    """

    job: str
    node: str
    window: int
    kind: str
    namespace: str
    name: str
    uid: str
    desired: float
    step_s: float
    slower_percent: float
    lost: tuple[LostPart, ...]
    gpus: int = 0

    @property
    def subject(self) -> str:
        """The name that people use."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def lost_share(self) -> float:
        """The share of its wanted time that it lost."""
        return sum(part.share for part in self.lost)

    @property
    def threads(self) -> float:
        """How many of its threads work side by side."""
        return max(1.0, self.desired)

    @property
    def end_ns(self) -> int:
        """The end of the window."""
        return (self.window + 1) * WINDOW_S * NS_PER_SECOND


def encode(ranks: Iterable[Rank]) -> bytes:
    """Return the ranks of one node as JSON."""
    rows = [list(map(_short, astuple(rank))) for rank in ranks]
    return json.dumps(rows, separators=(",", ":"), ensure_ascii=False).encode(errors="replace")


def decode(data: bytes) -> list[Rank]:
    """Parse ``encode``; raises ``RankError`` for anything else."""
    try:
        rows = foreign_json.loads(data, _MOST_BYTES)
    except ValueError as error:
        raise RankError(f"ranks are not JSON: {error}") from None
    if not isinstance(rows, list) or len(rows) > MOST_RANKS:
        raise RankError(f"ranks are not a list of at most {MOST_RANKS}")
    return [_rank(row) for row in rows]


def _short(value: Any) -> Any:
    """Return numbers with some digits."""
    if isinstance(value, float):
        return round(value, _DIGITS)
    return [_short(each) for each in value] if isinstance(value, tuple) else value


def _rank(row: object) -> Rank:
    whole = len(fields(Rank))
    if not isinstance(row, list) or len(row) not in (whole - 1, whole):
        raise RankError(f"{ascii(row)[:80]} is not a rank")
    *plain, lost, gpus = row if len(row) == whole else [*row, 0]
    values = [_value(each, spec.type) for each, spec in zip(plain, fields(Rank), strict=False)]
    if not isinstance(lost, list):
        raise RankError(f"{ascii(lost)[:80]} is not what a rank lost")
    return Rank(*values, tuple(map(_lost, lost)), _gpus(gpus))  # type: ignore[call-arg, arg-type]


def _lost(row: object) -> LostPart:
    match row:
        case [str(part), int() | float() as share, str(culprit)] if 0 <= share <= 1:
            return LostPart(part, float(share), culprit[:_MOST_TEXT])
    raise RankError(f"{ascii(row)[:80]} is not what a rank lost")


def _gpus(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_GPUS:
        return value
    raise RankError(f"{ascii(value)[:80]} is not a number of GPUs")


def _value(value: object, kind: object) -> str | int | float:
    if kind == "str" and isinstance(value, str):
        return value[:_MOST_TEXT]
    if isinstance(value, int | float) and not isinstance(value, bool) and kind != "str":
        if kind == "int" and isinstance(value, int):
            return value
        if kind == "float" and math.isfinite(value):
            return float(value)
    raise RankError(f"{ascii(value)[:80]} is not of a rank")


def window_of(time_ns: int) -> int:
    """Return the window of a time."""
    return time_ns // (WINDOW_S * NS_PER_SECOND)


def slower_percent(ranks: Iterable[Rank]) -> float | None:
    """Return by how many percent the steps of a job are longer; None where they are not read."""
    percents = [rank.slower_percent for rank in ranks if rank.step_s > 0]
    return median(percents) if percents else None


def by_job(ranks: Sequence[Rank]) -> dict[str, list[Rank]]:
    """Return the ranks of each job that has several."""
    found: dict[str, list[Rank]] = {}
    for rank in ranks:
        found.setdefault(rank.job, []).append(rank)
    return {job: own for job, own in found.items() if len(own) > 1}
