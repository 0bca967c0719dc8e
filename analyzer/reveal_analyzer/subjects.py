"""Which subject's share changed: the tenants' counters during an episode against before it."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.columns import known
from reveal_analyzer.seconds import SECOND_NS, Second
from reveal_contract import catalogue
from reveal_contract.channels import Channel
from reveal_contract.finding import Confidence, Subject
from reveal_contract.metric import Capacity, Scope, Subsystem

_KEPT = 150  # seconds
_BEFORE = 60  # seconds before an episode that its subjects are compared with
_MARGIN = 3  # seconds just before the onset that may already belong to it
_LEAST = 0.5  # change, in asinh units, below which a subject is not named
_MOST = 5  # subjects in a finding
_MEMORY = 24 << 30  # bytes of a node: which it is does not matter for a ranking
_GROUP = "pgrp:"
_DEFAULTS = {
    Subsystem.CPU: ("cpu.subject.throttled_time", "cpu.subject.usage"),
    Subsystem.MEMORY: (
        "memory.subject.oom_kills", "memory.subject.limit_hits", "memory.subject.refaults",
        "memory.subject.scanned", "memory.subject.usage", "memory.subject.page_faults",
    ),
    Subsystem.STORAGE: (
        "storage.subject.pressure", "storage.subject.read_bytes", "storage.subject.write_bytes",
    ),
    Subsystem.NETWORK: ("cpu.subject.usage",),
    Subsystem.GPU: ("cpu.subject.usage",),
}  # fmt: skip

Key = tuple[str, str]  # metric, instance


@dataclass(frozen=True)
class _Row:
    start_ns: int
    keys: tuple[Key, ...]
    values: NDArray[np.float64]


@dataclass(frozen=True)
class _Change:
    """One metric of one subject: its change in asinh units and its share, before and now."""

    instance: str
    change: float
    share: float
    share_before: float


@dataclass(frozen=True)
class Wanted:
    """Which subjects to look for.

    ``metrics`` are the ones a hypothesis points to; without any, the usual ones of the
    subsystem.  ``fell`` asks for who lost, else for who grew.
    """

    metrics: Sequence[str]
    subsystem: Subsystem
    fell: bool = False


class SubjectHistory:
    """The subjects' channels of the last minutes of one node."""

    def __init__(self) -> None:
        self._rows: deque[_Row] = deque(maxlen=_KEPT)
        self._channels: tuple[Channel, ...] = ()
        self._places: NDArray[np.intp] = np.zeros(0, np.intp)
        self._keys: tuple[Key, ...] = ()

    def push(self, second: Second) -> None:
        """Remember the subjects of one second."""
        if second.plan.channels is not self._channels:
            self._channels = second.plan.channels
            found = [(at, c) for at, c in enumerate(self._channels) if _of_subject(c)]
            self._places = np.array([at for at, _ in found], np.intp)
            self._keys = tuple((c.metric, c.instance) for _, c in found)
        values = np.nan_to_num(second.channels[self._places])
        self._rows.append(_Row(second.start_ns, self._keys, values))

    def changed(self, wanted: Wanted, first_ns: int, last_ns: int) -> tuple[Subject, ...]:
        """The subjects that changed most from before to during, most first."""
        during = self._means(first_ns, last_ns)
        onset = first_ns - _MARGIN * SECOND_NS
        before = self._means(onset - _BEFORE * SECOND_NS, onset)
        best: dict[str, _Change] = {}
        for metric in wanted.metrics or _DEFAULTS[wanted.subsystem]:
            for change in _changes(metric, during, before):
                held = best.get(change.instance)
                if held is None or abs(change.change) > abs(held.change):
                    best[change.instance] = change
        ranked = sorted(best.values(), key=lambda c: (-_guilt(c.change, wanted.fell), c.instance))
        return tuple(_subject(c) for c in ranked[:_MOST] if abs(c.change) >= _LEAST)

    def _means(self, first_ns: int, last_ns: int) -> dict[Key, float]:
        """Mean of every subject channel over a time; seconds without the subject count as 0."""
        rows = [row for row in self._rows if first_ns <= row.start_ns < last_ns]
        sums: dict[Key, float] = {}
        for row in rows:
            for key, value in zip(row.keys, row.values.tolist(), strict=True):
                sums[key] = sums.get(key, 0.0) + value
        return {key: total / len(rows) for key, total in sums.items()}


def _guilt(change: float, fell: bool) -> float:
    """What grew is rather the cause, what shrank rather the victim: a fall counts a quarter."""
    return -change if fell else max(change, -change / 4)


def _of_subject(channel: Channel) -> bool:
    if not channel.instance or not known(channel):
        return False
    return catalogue.find(channel.metric).scope is Scope.SUBJECT


def _changes(metric: str, during: dict[Key, float], before: dict[Key, float]) -> list[_Change]:
    row = catalogue.find(metric)
    quantum = row.quantum * (_MEMORY if row.capacity is Capacity.MEMORY else 1.0)
    names = {name for kind, name in (*during, *before) if kind == metric}
    total = sum(during.get((metric, name), 0.0) for name in names)
    total_before = sum(before.get((metric, name), 0.0) for name in names)
    made = []
    for name in names:
        now, then = during.get((metric, name), 0.0), before.get((metric, name), 0.0)
        made.append(
            _Change(
                instance=name,
                change=float(np.arcsinh(now / quantum) - np.arcsinh(then / quantum)),
                share=now / total if total > 0 else 0.0,
                share_before=then / total_before if total_before > 0 else 0.0,
            )
        )
    return made


def _subject(change: _Change) -> Subject:
    group = change.instance.startswith(_GROUP)
    unit = change.instance.endswith((".service", ".scope", ".slice"))
    return Subject(
        kind="ProcessGroup" if group else "Unit" if unit else "Cgroup",
        name=change.instance,
        share_percent=round(100 * change.share),
        change_percent=round(100 * (change.share - change.share_before)),
        confidence=Confidence.INFERRED if group else Confidence.MEASURED,
    )
