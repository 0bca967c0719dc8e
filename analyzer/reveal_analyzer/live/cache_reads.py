"""Values of pages that are read again while nothing takes memory from anybody.

A refault is a page of a file that is read again after the page cache dropped it (mm/workingset.c),
and a major fault may be one.  While the kernel scans pages to reclaim them, both show a shortage:
what was just dropped is needed.  Without that, a program that starts reads what was dropped hours
ago, by a job that is over or ahead of need (DAMON, memory.reclaim, drop_caches).  That is work of
the disk, and says nothing of the memory.  So while no page was scanned lately, more of these than
the node is used to are not scored.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reveal_analyzer.arrays import Bools, Floats, Indices
from reveal_analyzer.derive.columns import Column
from reveal_analyzer.derive.deriver import Second

_CALM_S = 10  # the longest view of the live score
_READS = frozenset({"memory.vm.workingset_refault_file", "memory.vm.pgmajfault"})
# These count the reclaim within cgroups, too, which pgscan_direct and pgscan_kswapd leave out
# (mm/vmscan.c).  They exist since Linux 5.8.
_SCANS = frozenset({"memory.vm.pgscan_file", "memory.vm.pgscan_anon"})


class CacheReads:
    """When pages of one node were scanned last, and which values are of reads alone."""

    def __init__(self) -> None:
        self._columns: Sequence[Column] = ()
        self._reads: Indices = np.zeros(0, np.intp)
        self._scans: Indices = np.zeros(0, np.intp)
        self._calm_s = 0  # since the last scan

    def scorable(self, second: Second, values: Floats, highest: Floats) -> Floats:
        """Return the values (columns,) that may be scored; the others are NaN.

        ``highest`` are the highest levels that are normal.
        """
        if second.plan.columns is not self._columns:
            self._columns = second.plan.columns
            self._reads, self._scans = (_indices(self._columns, each) for each in (_READS, _SCANS))
        scans = second.values[self._scans]
        # where nobody knows whether pages were scanned, they may have been
        calm = bool(scans.size) and not (np.isnan(scans) | (scans > 0)).any()
        self._calm_s = self._calm_s + 1 if calm else 0
        if self._calm_s < _CALM_S:
            return values
        unusual: Bools = second.values[self._reads] > highest[self._reads]
        if not unusual.any():
            return values
        masked = values.copy()
        masked[self._reads[unusual]] = np.nan
        return masked


def _indices(columns: Sequence[Column], metrics: frozenset[str]) -> Indices:
    return np.array([n for n, each in enumerate(columns) if each.metric.name in metrics], np.intp)
