"""CPU time of spliced seconds: layers on top of each other give no CPU more time than there is.

/proc/stat counts each tick of a CPU in one state (proc_stat(5)).  So the time that the states of a
CPU have together in a tick of the base is what they share in the spliced tick, too.  What one CPU
has no time for runs on one that idles, as the scheduler would move it; the rest does not run.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from reveal_contract.channels import Channel

_BUSY = ("cpu.user", "cpu.system", "cpu.nice", "cpu.softirq", "cpu.irq", "cpu.steal")
_WAITING, _IDLE, _RUN_TIME = "cpu.iowait", "cpu.idle", "cpu.run_time"
STATES = (*_BUSY, _WAITING, _IDLE)
_HOST = ""
Counts = NDArray[np.int64]


class CpuTime:
    """The columns of CPU time among the fast channels of a table."""

    def __init__(self, channels: Sequence[Channel]) -> None:
        positions = {(c.metric, c.instance): index for index, c in enumerate(channels)}
        names = dict.fromkeys(c.instance for c in channels if c.metric == _IDLE)
        states = {
            name: np.array([positions[state, name] for state in STATES], np.intp)
            for name in names
            if all((state, name) in positions for state in STATES)
        }
        host = states.pop(_HOST, None)
        # a host of many CPUs has no channels of single ones
        self._cpus = list(states.values()) or ([] if host is None else [host])
        self._host = host if states else None
        self._run_time = np.array(
            [index for index, c in enumerate(channels) if c.metric == _RUN_TIME], np.intp
        )
        self._run_ns = np.array([channels[index].scale for index in self._run_time], np.float64)

    def fit(self, base: Counts, values: Counts, missing: NDArray[np.bool_], tick_us: int) -> None:
        """Take from ``values`` (ticks, channels), in the array itself, what CPUs have no time for.

        ``base`` are the ticks below the layer; those with a missing state stay as they are.
        """
        if self._cpus:
            columns = np.concatenate(self._cpus)
            ticks = np.flatnonzero(~missing[:, columns].any(axis=1))
            shape = len(ticks), len(self._cpus), len(STATES)
            index = np.ix_(ticks, columns)
            time = base[index].reshape(shape).sum(axis=2)
            shared = share(values[index].reshape(shape), time)
            values[index] = shared.reshape(len(ticks), -1)
            if self._host is not None:
                values[np.ix_(ticks, self._host)] = shared.sum(axis=1)
        most = np.maximum(base[:, self._run_time], (tick_us * 1000 / self._run_ns).astype(np.int64))
        values[:, self._run_time] = np.minimum(values[:, self._run_time], most)


def share(counts: Counts, time: Counts) -> Counts:
    """Return counts (ticks, CPUs, states) that are ``time`` (ticks, CPUs) together.

    What is too much on a CPU is taken from its busy states in order.  It becomes user time of CPUs
    that have time left.
    """
    busy, shared = counts[:, :, : len(_BUSY)].copy(), counts.copy()
    over = np.maximum(busy.sum(axis=2) - time, 0)
    excess = over.sum(axis=1)
    for state in range(len(_BUSY)):
        taken = np.minimum(busy[:, :, state], over)
        busy[:, :, state] -= taken
        over -= taken
    for cpu in range(time.shape[1]):
        moved = np.minimum(time[:, cpu] - busy[:, cpu].sum(axis=1), excess)
        busy[:, cpu, 0] += moved
        excess -= moved
    rest = time - busy.sum(axis=2)
    waiting = np.minimum(counts[:, :, len(_BUSY)], rest)
    shared[:, :, : len(_BUSY)] = busy
    shared[:, :, len(_BUSY)] = waiting
    shared[:, :, len(_BUSY) + 1] = rest - waiting
    return shared
