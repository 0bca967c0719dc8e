"""How TCP loses segments: scattered whatever the load, or by the queueful in the job's own bursts.

The kernel counts what was sent again, not why.  Three figures of the ticks of the last ten
seconds tell a lossy path from a queue that overflows (measured on both, with CUBIC and BBR):

- *clumping*: the variance of retransmissions per tick over that of losses that fall on any
  segment with the same probability (index of dispersion).  Scattered losses give about 1
  however sends come; overflowing queues 10 and more.
- *recovery length*: segments sent again for each loss recovery the kernel entered (SACK, Reno
  or timeout).  Scattered losses need 1 to 3, up to 6 at 5 % of a full pipe; a queue that
  overflows drops the tail of a burst: 5 with CUBIC, 40 and more with BBR.
- *in bursts*: the share of retransmissions in ticks of at least twice the mean load, or up to
  two ticks after one (a timeout takes 200 ms at least).  Of a steady sender it is 0.
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
AGAIN = "network.tcp.retrans_segs"
# original data segments; where the kernel does not count them, all sent ones, ACKs included
SENT = ("network.tcp_ext.tcp_orig_data_sent", "network.tcp.out_segs")
RECOVERIES = tuple(
    f"network.tcp_ext.tcp_{name}" for name in ("sack_recovery", "reno_recovery", "timeouts")
)

_WINDOW_S = 10
_ENOUGH = 10  # retransmissions in the window below which they make no pattern
_BUSY_TICKS = 5  # with sends, between the first and last retransmission, likewise
_BURST = 2.0  # times the mean load
_LAG = 2  # ticks after a burst in which its losses are sent again
_PPM = 1e6
_UNKNOWN = float("nan")


@dataclass(frozen=True)
class Losses:
    """The three figures, in the order of ``METRICS``; NaN where there are too few losses."""

    clumping: float = _UNKNOWN
    recovery_length: float = _UNKNOWN
    in_bursts: float = _UNKNOWN


_SILENT = astuple(Losses())


@dataclass(frozen=True)
class Places:
    """Where the counters are among the fast channels of a table."""

    sent: int
    again: int
    recoveries: tuple[int, ...]

    @cached_property
    def columns(self) -> NDArray[np.intp]:
        """All of them, in this order."""
        return np.array([self.sent, self.again, *self.recoveries], np.intp)


def places(fast: Sequence[Channel]) -> Places | None:
    """None where this table cannot tell."""
    at = {channel.metric: place for place, channel in enumerate(fast) if not channel.instance}
    sent = next((at[name] for name in SENT if name in at), None)
    recoveries = tuple(at[name] for name in RECOVERIES if name in at)
    if sent is None or AGAIN not in at or not recoveries:
        return None
    return Places(sent, at[AGAIN], recoveries)


class LossWatch:
    """The last ten seconds of one node's TCP, tick by tick."""

    def __init__(self) -> None:
        self._ticks: deque[NDArray[np.int64]] = deque(maxlen=_WINDOW_S)
        self._again: deque[int] = deque(maxlen=_WINDOW_S)

    def push(self, message: Message, where: Places) -> tuple[float, ...]:
        """Take in a slice; the values of ``METRICS`` now."""
        columns = where.columns
        counts = message.fast.take(columns, axis=1)
        if message.fast_missing.any():
            counts[message.fast_missing[:, columns]] = 0
        self._ticks.append(counts)
        self._again.append(int(np.add.reduce(counts[:, 1])))
        if sum(self._again) < _ENOUGH:
            return _SILENT
        sent, again, recoveries = np.concatenate([_three(each) for each in self._ticks]).T
        return astuple(measure(sent, again, recoveries))

    def forget(self) -> None:
        """After a gap: bursts must not span it."""
        self._ticks.clear()
        self._again.clear()


def _three(counts: NDArray[np.int64]) -> Floats:
    """Ticks of what was sent, sent again, and all recoveries together."""
    return np.column_stack([counts[:, :2], counts[:, 2:].sum(axis=1)]).astype(np.float64)


def measure(sent: Floats, again: Floats, recoveries: Floats) -> Losses:
    """The figures of segments sent, sent again, and recoveries begun, per tick."""
    total = float(again.sum())
    if total < _ENOUGH:
        return Losses()
    begun = float(recoveries.sum())
    return Losses(
        clumping=_clumping(sent, again),
        recovery_length=total / begun if begun else _UNKNOWN,
        in_bursts=_PPM * float(again[_burst_ticks(sent)].sum()) / total,
    )


def _clumping(sent: Floats, again: Floats) -> float:
    """From the first to the last retransmission: what came before was another state."""
    at = np.flatnonzero(again)
    sent, again = sent[at[0] : at[-1] + 1], again[at[0] : at[-1] + 1]
    if np.count_nonzero(sent) < _BUSY_TICKS:
        return _UNKNOWN
    expected = again.sum() * sent / sent.sum()
    return float(np.sum((again - expected) ** 2) / expected.sum())


def _burst_ticks(sent: Floats) -> NDArray[np.bool_]:
    """Bursts and the ticks just after, against the mean load from first to last send."""
    at = np.flatnonzero(sent)
    if not at.size:
        return np.zeros(sent.size, np.bool_)
    burst = sent >= _BURST * sent[at[0] : at[-1] + 1].mean()
    near: NDArray[np.bool_] = burst.copy()
    for lag in range(1, _LAG + 1):
        near[lag:] |= burst[:-lag]
    return near
