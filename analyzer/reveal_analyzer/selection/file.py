"""The file ``selection.yaml``: which metrics are kept, why, and what represents each dropped one.

    version: 1
    threshold: 0.5
    workloads:
    - {name: train, recordings: 3, rows: 1140}
    kept:
    - {metric: cpu.user, reason: represents 3 others}
    dropped:
    - {metric: 'cpu.user{0}', by: cpu.user, r: 0.93}

``r`` is the mean correlation over the workloads in which both moved.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import yaml

FORMAT_VERSION = 1
_KEYS = ("version", "threshold", "workloads", "kept", "dropped")
_T = TypeVar("_T")


class SelectionError(ValueError):
    """The file is no valid selection; the message says where and why."""


@dataclass(frozen=True)
class KeptMetric:
    """A metric that is kept, and why."""

    metric: str
    reason: str


@dataclass(frozen=True)
class DroppedMetric:
    """``by`` represents ``metric``; ``r`` is their correlation, -1 to 1."""

    metric: str
    by: str
    r: float


@dataclass(frozen=True)
class WorkloadSummary:
    """A workload that the selection is based on, its recordings and the rows in them."""

    name: str
    recordings: int
    rows: int


@dataclass(frozen=True)
class Selection:
    """Kept and dropped metrics at a threshold."""

    threshold: float
    kept: tuple[KeptMetric, ...]
    dropped: tuple[DroppedMetric, ...]
    workloads: tuple[WorkloadSummary, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the file's content as plain values, in the order in which it is written."""
        return {
            "version": FORMAT_VERSION,
            "threshold": self.threshold,
            "workloads": [asdict(each) for each in self.workloads],
            "kept": [asdict(each) for each in self.kept],
            "dropped": [asdict(each) for each in self.dropped],
        }

    def to_yaml(self) -> str:
        """Return the file's content, one metric per line."""
        text: str = yaml.safe_dump(
            self.to_dict(), sort_keys=False, default_flow_style=None, width=1000, allow_unicode=True
        )
        return text


def load(path: Path) -> Selection:
    """Read a selection file; raise ``SelectionError`` with the file and the error in it."""
    try:
        return parse(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SelectionError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SelectionError(f"{path}: is not text (UTF-8)") from None
    except SelectionError as error:
        raise SelectionError(f"{path}: {error}") from None


def parse(text: str) -> Selection:
    """Parse the content of a selection file; raise ``SelectionError``."""
    try:
        data = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        message = " ".join(str(error).split())
        raise SelectionError(f"is not YAML: {message or 'nested too deeply'}") from None
    if not isinstance(data, dict) or data.get("version") != FORMAT_VERSION:
        raise SelectionError(f"must be a mapping with version: {FORMAT_VERSION}")
    if extra := [str(key) for key in data if key not in _KEYS]:
        raise SelectionError(f"unknown key {extra[0]}; allowed are {', '.join(_KEYS)}")
    selection = Selection(
        threshold=_number(data.get("threshold"), "threshold", 0.0),
        kept=_rows(data, "kept", _kept),
        dropped=_rows(data, "dropped", _dropped),
        workloads=_rows(data, "workloads", _basis),
    )
    _check(selection)
    return selection


def _check(selection: Selection) -> None:
    """Check that each metric is listed once and that every representative is kept."""
    kept = {each.metric for each in selection.kept}
    names = [each.metric for each in selection.kept]
    names += [each.metric for each in selection.dropped]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise SelectionError(f"{twice} is listed twice")
    for each in selection.dropped:
        if each.by not in kept:
            raise SelectionError(f"dropped: {each.metric}: by: {each.by} is not kept")


def _rows(data: dict[Any, Any], key: str, read: Callable[[Any, str], _T]) -> tuple[_T, ...]:
    rows = data.get(key) or []
    if not isinstance(rows, list):
        raise SelectionError(f"{key}: must be a list")
    return tuple(read(row, f"{key}: entry {number}") for number, row in enumerate(rows, 1))


def _kept(row: Any, where: str) -> KeptMetric:
    match row:
        case {"metric": str(metric), "reason": str(reason), **rest} if not rest:
            return KeptMetric(metric, reason)
    raise SelectionError(f"{where}: must have metric and reason, and nothing else")


def _dropped(row: Any, where: str) -> DroppedMetric:
    match row:
        case {"metric": str(metric), "by": str(by), "r": r, **rest} if not rest:
            return DroppedMetric(metric, by, _number(r, f"{where}: r", -1.0))
    raise SelectionError(f"{where}: must have metric, by and r, and nothing else")


def _basis(row: Any, where: str) -> WorkloadSummary:
    match row:
        case {"name": str(name), "recordings": int(recordings), "rows": int(rows), **rest}:
            if not rest:
                return WorkloadSummary(name, recordings, rows)
    raise SelectionError(f"{where}: must have name, recordings and rows, and nothing else")


def _number(value: Any, where: str, least: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= 1:
        raise SelectionError(f"{where}: must be a number from {least:g} to 1")
    return float(value)
