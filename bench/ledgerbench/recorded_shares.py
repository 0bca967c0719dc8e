"""The CPU shares that a recording announces, as they are while its slices are played."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from faultbench.sessions import Slice
from reveal_contract.cpu_shares import EQUAL_SHARES, CpuShares
from reveal_contract.names import CPU_SHARES
from reveal_contract.recording import RecordingReader


class RecordedShares:
    """Shares by the number of slices before them; ``current`` are those at the played slice."""

    def __init__(self, path: Path) -> None:
        self._announced: list[tuple[int, CpuShares]] = []
        self._played = 0
        count = 0
        for entry in RecordingReader(path):
            count += entry.table is not None
            if entry.note is not None and CPU_SHARES in entry.note:
                self._announced.append((count, CpuShares.from_rows(entry.note[CPU_SHARES])))

    def play(self, slices: Iterable[Slice]) -> Iterator[Slice]:
        """Yield the slices; they begin with the first one of the recording."""
        for self._played, each in enumerate(slices):
            yield each

    def current(self) -> CpuShares:
        """Return the latest shares; those of all equal before the first announcement."""
        known = [shares for count, shares in self._announced if count <= self._played]
        return known[-1] if known else EQUAL_SHARES
