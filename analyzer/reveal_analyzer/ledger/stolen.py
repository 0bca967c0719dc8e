"""The part of CPU time that the hypervisor took.

The clocks of the kernel that the ledger reads go on while the hypervisor runs another machine on a
CPU, so a thread that is on this CPU runs as far as the ledger can see.  ``/proc/stat`` says how
much was stolen from the host, not from whom: every subject lost the same part of its run time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from reveal_analyzer.arrays import Floats, Indices
from reveal_contract.channels import Channel

_STOLEN = "cpu.steal"
_USED = ("cpu.user", "cpu.nice", "cpu.system", "cpu.irq", "cpu.softirq")


def cpu_channels(channels: Sequence[Channel], by_metric: Mapping[str, Sequence[int]]) -> Indices:
    """Return the channels of the host's CPU time, stolen time first; none without that."""
    found = [
        index
        for metric in (_STOLEN, *_USED)
        for index in by_metric.get(metric, ())
        if not channels[index].instance
    ]
    has_stolen = bool(found) and channels[found[0]].metric == _STOLEN
    return np.array(found if has_stolen else [], np.intp)


def stolen_share(cpu: Floats) -> float:
    """Return the share of the time on CPUs that was stolen, of the times of ``cpu_channels``."""
    times = np.nan_to_num(cpu)
    total = float(times.sum())
    return float(times[0]) / total if total > 0 else 0.0
