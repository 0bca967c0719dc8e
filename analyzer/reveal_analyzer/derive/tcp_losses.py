"""Patterns of TCP losses: scattered over time, or many at once in the job's own bursts.

The kernel counts retransmissions, not their cause.  Three metrics of the ticks of the last ten
seconds separate a lossy path from an overflowing queue (measured on both, with CUBIC and BBR):

- *clumping*: the variance of retransmissions per tick over that of losses that hit every
  segment with the same probability (index of dispersion).  Scattered losses give about 1
  however segments are sent; overflowing queues give 10 and more.
- *recovery length*: retransmitted segments per loss recovery that the kernel entered (SACK, Reno
  or timeout).  Scattered losses need 1 to 3, up to 6 at 5 % loss on a busy path.  An overflowing
  queue drops the tail of a burst: 5 with CUBIC, 40 and more with BBR.
- *in bursts*: the share of retransmissions in ticks of at least twice the mean load, or up to
  two ticks after one (a timeout takes at least 200 ms).  It is 0 for a steady sender.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.arrays import Floats
from reveal_contract.channels import Channel
from reveal_contract.wire import Message

METRICS = ("network.tcp.loss_clumping", "network.tcp.recovery_length", "network.tcp.in_bursts")
RETRANSMITTED = "network.tcp.retrans_segs"
# original data segments; a kernel that does not count them has all sent segments, with ACKs
SENT = ("network.tcp_ext.tcp_orig_data_sent", "network.tcp.out_segs")
RECOVERIES = tuple(
    f"network.tcp_ext.tcp_{name}" for name in ("sack_recovery", "reno_recovery", "timeouts")
)

_WINDOW_S = 10
_ENOUGH = 10  # retransmissions in the window; fewer make no pattern
_BUSY_TICKS = 5  # with sent segments between first and last retransmission; fewer make no pattern
_BURST = 2.0  # multiple of the mean load
_LAG = 2  # ticks after a burst in which its losses are retransmitted
_PPM = 1e6
_UNKNOWN = float("nan")


@dataclass(frozen=True)
class Losses:
    """The three metrics, in the order of ``METRICS``; NaN if there are too few losses."""

    clumping: float = _UNKNOWN
    recovery_length: float = _UNKNOWN
    in_bursts: float = _UNKNOWN


_SILENT = astuple(Losses())


@dataclass(frozen=True)
class LossCounters:
    """Indices of the TCP counters among the fast channels of a table."""

    sent: int
    retransmitted: int
    recoveries: tuple[int, ...]

    @cached_property
    def columns(self) -> NDArray[np.intp]:
        """Return all indices, in the order of the fields."""
        return np.array([self.sent, self.retransmitted, *self.recoveries], np.intp)


def loss_counters(fast: Sequence[Channel]) -> LossCounters | None:
    """Return the TCP counters of a table; None if it does not have them all."""
    index = {
        channel.metric: position for position, channel in enumerate(fast) if not channel.instance
    }
    sent = next((index[name] for name in SENT if name in index), None)
    recoveries = tuple(index[name] for name in RECOVERIES if name in index)
    if sent is None or RETRANSMITTED not in index or not recoveries:
        return None
    return LossCounters(sent, index[RETRANSMITTED], recoveries)


class LossWatch:
    """The last ten seconds of one node's TCP, tick by tick."""

    def __init__(self) -> None:
        self._ticks: deque[NDArray[np.int64]] = deque(maxlen=_WINDOW_S)
        self._retransmitted: deque[int] = deque(maxlen=_WINDOW_S)

    def push(self, message: Message, counters: LossCounters) -> tuple[float, ...]:
        """Add a slice; return the present values of ``METRICS``.

        A tick in which a counter was not read is left out: its zeros would count as silence.
        """
        columns = counters.columns
        counts = message.fast.take(columns, axis=1)
        if message.fast_missing.any():
            counts = counts[~message.fast_missing.take(columns, axis=1).any(axis=1)]
        self._ticks.append(counts)
        self._retransmitted.append(int(np.add.reduce(counts[:, 1])))
        if not len(counts) or sum(self._retransmitted) < _ENOUGH:
            return _SILENT
        sent, retransmitted, recoveries = np.concatenate(
            [_tick_sums(each) for each in self._ticks]
        ).T
        return astuple(measure(sent, retransmitted, recoveries))

    def reset(self) -> None:
        """Drop all ticks after a gap, as a burst must not span it."""
        self._ticks.clear()
        self._retransmitted.clear()


def _tick_sums(counts: NDArray[np.int64]) -> Floats:
    """Return segments sent, segments retransmitted, and all recoveries, per tick."""
    return np.column_stack([counts[:, :2], counts[:, 2:].sum(axis=1)]).astype(np.float64)


def measure(sent: Floats, retransmitted: Floats, recoveries: Floats) -> Losses:
    """Return the metrics for sent and retransmitted segments and recoveries, per tick."""
    total = float(retransmitted.sum())
    if total < _ENOUGH:
        return Losses()
    begun = float(recoveries.sum())
    return Losses(
        clumping=_clumping(sent, retransmitted),
        recovery_length=total / begun if begun else _UNKNOWN,
        in_bursts=_PPM * float(retransmitted[_burst_ticks(sent)].sum()) / total,
    )


def _clumping(sent: Floats, retransmitted: Floats) -> float:
    """Return the clumping between the first and the last retransmission.

    Ticks outside belong to another state of the path.
    """
    indices = np.flatnonzero(retransmitted)
    sent, retransmitted = (
        sent[indices[0] : indices[-1] + 1],
        retransmitted[indices[0] : indices[-1] + 1],
    )
    if np.count_nonzero(sent) < _BUSY_TICKS:
        return _UNKNOWN
    expected = retransmitted.sum() * sent / sent.sum()
    return float(np.sum((retransmitted - expected) ** 2) / expected.sum())


def _burst_ticks(sent: Floats) -> NDArray[np.bool_]:
    """Return the ticks of bursts and just after, relative to the mean load while data was sent."""
    indices = np.flatnonzero(sent)
    if not indices.size:
        return np.zeros(sent.size, np.bool_)
    burst = sent >= _BURST * sent[indices[0] : indices[-1] + 1].mean()
    near: NDArray[np.bool_] = burst.copy()
    for lag in range(1, _LAG + 1):
        near[lag:] |= burst[:-lag]
    return near
