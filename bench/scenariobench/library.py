"""The clips of a folder, by what they show; each is read when it is needed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from scenariobench import clip_file
from scenariobench.clip import Clip
from scenariobench.collect import BASE, HEALTHY

_LEADS = 12  # quiet seconds before other faults of a session that vary its base
_READ, _STOLEN = "storage.disk.read_bytes", "cpu.steal"


@lru_cache(maxsize=96)
def _read(path: Path) -> Clip:
    return clip_file.read(path)


@dataclass(frozen=True)
class _Entry:
    path: Path
    workload: str
    session: str
    fault: str | None
    weak: bool
    base: bool


class Library:
    """Clips by workload and fault; raises ``ClipError`` where there are none."""

    def __init__(self, *folders: Path) -> None:
        paths = sorted(path for folder in folders for path in folder.glob(f"*{clip_file.SUFFIX}"))
        if not paths:
            names = ", ".join(map(str, folders))
            raise clip_file.ClipError(f"there are no clips in {names}")
        self._entries = [_entry(path) for path in paths]

    def faults(self, workload: str | None = None, *, weak: bool = False) -> list[tuple[str, str]]:
        """Return (workload, fault) of every recorded fault, each once."""
        return sorted(
            {
                (entry.workload, entry.fault)
                for entry in self._entries
                if entry.fault and (weak or not entry.weak) and workload in (None, entry.workload)
            }
        )

    def fault(self, name: str, *workloads: str) -> Clip | None:
        """Return the first clip of a fault, in the order of preference of the workloads."""
        found = [entry for entry in self._entries if entry.fault == name]
        for workload in workloads:
            for entry in found:
                if entry.workload == workload:
                    return _read(entry.path)
        return _read(found[0].path) if found and not workloads else None

    def base(self, clip: Clip) -> tuple[Clip, ...]:
        """Return the healthy seconds of the session that a clip is of."""
        session = next(e.session for e in self._entries if _read_name(e) == clip.name)
        bases = [e for e in self._entries if e.base and e.session == session]
        others = [e for e in self._entries if e.fault and e.session == session]
        warm = tuple(_read(entry.path) for entry in bases)
        most_read = 2 * max(float(_seconds(each, _READ).max()) for each in warm)
        most_stolen = 3 * max(float(_seconds(each, _STOLEN).mean()) for each in warm)
        leads = (_lead(_read(entry.path)) for entry in others)
        quiet = (
            lead
            for lead in leads
            if len(lead) >= 4
            and _seconds(lead, _READ).max() <= most_read
            and _seconds(lead, _STOLEN).mean() <= most_stolen
        )
        return (*warm, *islice(quiet, _LEADS))

    def healthy(self) -> list[tuple[str, tuple[Clip, ...]]]:
        """Return the healthy recordings: (name, clips in order)."""
        groups: dict[str, list[Path]] = {}
        for entry in self._entries:
            if entry.fault is None and not entry.base:
                groups.setdefault(f"{entry.workload}-{entry.session}", []).append(entry.path)
        return [
            (name, tuple(_read(path) for path in sorted(paths, key=_number)))
            for name, paths in groups.items()
        ]


def _lead(clip: Clip) -> Clip:
    """Return the quiet seconds before the fault of a clip."""
    assert clip.fault is not None
    return clip.part(0, clip.fault.first, f"{clip.name}-lead")


def _seconds(clip: Clip, metric: str) -> NDArray[np.float64]:
    """Return the sum of a counter over its instances, by second.

    Where far more than in the warm-up is read or stolen, another process or another guest of the
    host works: these seconds are not quiet.
    """
    indices = [i for i, c in enumerate(clip.channels.fast) if c.metric == metric]
    scales = [clip.channels.fast[index].scale for index in indices]
    return np.asarray(clip.fast[:, :, indices].sum(axis=1) @ np.array(scales, np.float64))


def _read_name(entry: _Entry) -> str:
    return entry.path.name.removesuffix(clip_file.SUFFIX)


def _number(path: Path) -> int:
    return int(path.name.removesuffix(clip_file.SUFFIX).rpartition("-")[2])


def _entry(path: Path) -> _Entry:
    workload, name, fault = clip_file.read_fault(path)
    if fault is not None:
        session = name.removesuffix(f"-{fault.name}")
        return _Entry(path, workload, session, fault.name, fault.weak, base=False)
    base, healthy = f"{workload}-{BASE}-", f"{workload}-{HEALTHY}-"
    if name.startswith(base):
        return _Entry(path, workload, name.removeprefix(base), None, weak=False, base=True)
    session = name.removeprefix(healthy).rpartition("-")[0]
    return _Entry(path, workload, session, None, weak=False, base=False)
