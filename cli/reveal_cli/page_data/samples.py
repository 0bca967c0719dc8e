"""Samples of some channels over a recording, as finely as they were read near findings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from reveal_analyzer.arrays import Floats, Indices
from reveal_analyzer.derive.columns import LARGEST
from reveal_cli.page_data.model import Points
from reveal_contract.channels import ChannelTable
from reveal_contract.metric import Kind
from reveal_contract.time_units import NS_PER_SECOND
from reveal_contract.wire import Message

_FINE_NS = 60 * 10**9  # around the onset and the end of a finding, all samples are kept
_BAND = (0.05, 0.95)


class SampleRequest(NamedTuple):
    """A metric of a node; without an instance it is folded over all of its instances."""

    node: str
    metric: str
    instance: str
    feature: str


@dataclass
class SampleSeries:
    """The samples of one request: their times in ns, and their values in base units.

    All are kept within a minute of ``edges_ns``, and one of ``step`` seconds elsewhere.
    """

    request: SampleRequest
    edges_ns: Sequence[int] = ()
    step: int = 1
    period_ns: int = 0
    _pushed: int = 0
    _times: list[Indices] = field(default_factory=list)
    _values: list[Floats] = field(default_factory=list)
    _where: dict[bytes, tuple[bool, Indices, Floats, bool]] = field(default_factory=dict)

    def fill(self, times_ns: Indices, values: Floats) -> None:
        """Take a value for each ``step`` seconds, for a metric that is computed from others."""
        self.period_ns = self.step * NS_PER_SECOND
        self._times, self._values = [times_ns], [values]

    def push(self, message: Message, table: ChannelTable) -> None:
        """Add the samples of a slice, if the table has the metric."""
        self._pushed += 1
        if (self._pushed - 1) % self.step and not self._is_near_edge(message.start_ns):
            return
        if table.key not in self._where:
            self._where[table.key] = self._locate(table)
        fast, indices, scale, counter = self._where[table.key]
        if not indices.size:
            return
        if fast:
            raw, missing = message.fast[:, indices], message.fast_missing[:, indices]
            period_ns = message.tick_us * 1000
        else:
            raw, missing = message.slow[None, indices], message.slow_missing[None, indices]
            period_ns = NS_PER_SECOND
        self.period_ns = period_ns
        values = np.where(missing, np.nan, raw * scale)
        if counter:
            values /= period_ns / 1e9
        self._values.append(self._folded(values))
        self._times.append(message.start_ns + np.arange(len(values)) * period_ns)

    @property
    def times_ns(self) -> Indices:
        return np.concatenate(self._times) if self._times else np.zeros(0, np.int64)

    @property
    def values(self) -> Floats:
        return np.concatenate(self._values) if self._values else np.zeros(0)

    @property
    def apart_s(self) -> float:
        """Time between two samples from which some are missing."""
        return 2.5 * self.step

    def _is_near_edge(self, time_ns: int) -> bool:
        return any(abs(time_ns - edge) <= _FINE_NS + NS_PER_SECOND for edge in self.edges_ns)

    def _locate(self, table: ChannelTable) -> tuple[bool, Indices, Floats, bool]:
        for fast, channels in ((True, table.fast), (False, table.slow)):
            found = [
                index
                for index, channel in enumerate(channels)
                if channel.metric == self.request.metric
                and self.request.instance in ("", channel.instance)
            ]
            if found:
                scale = np.array([channels[index].scale for index in found])
                counter = channels[found[0]].kind is Kind.COUNTER
                return fast, np.array(found, np.intp), scale, counter
        return False, np.zeros(0, np.intp), np.zeros(0), False

    def _folded(self, values: Floats) -> Floats:
        if values.shape[1] == 1:
            return values[:, 0]
        known = ~np.isnan(values).all(axis=1)
        folded = np.full(len(values), np.nan)
        fold = np.nanmax if self.request.feature == LARGEST else np.nansum
        folded[known] = fold(values[known], axis=1)
        return folded


def read_samples(
    slices: Iterable[tuple[Message, ChannelTable]],
    requests: Mapping[SampleRequest, Sequence[int]],
    steps: Mapping[str, int],
) -> dict[SampleRequest, SampleSeries]:
    """Return the samples of all requests, in one pass.

    All samples are kept near the times of a request, and one of so many seconds of its node
    (``steps``) elsewhere: a long recording has more than fit into memory.
    """
    series = {
        request: SampleSeries(request, edges, steps[request.node])
        for request, edges in requests.items()
    }
    for message, table in slices if series else ():
        for request, each in series.items():
            if request.node == message.node:
                each.push(message, table)
    return series


def band_of(
    times_ns: Indices, values: Floats, busy_ns: Sequence[tuple[int, int]]
) -> tuple[float, float] | None:
    """Return the range of nine of ten samples outside of some times; None without samples."""
    calm = ~np.isnan(values)
    for first, last in busy_ns:
        calm &= (times_ns < first) | (times_ns > last)
    if not calm.any():
        return None
    low, high = np.quantile(values[calm], _BAND).tolist()
    return low, high


def window_lines(
    times_ns: Indices,
    values: Floats,
    edges_ns: tuple[int, int],
    window_ns: tuple[int, int],
    start_ns: int,
    apart_s: float = 2.5,
) -> list[Points]:
    """Return the samples of a window: all within a minute of an edge, and means of seconds.

    They are one line where they are less than ``apart_s`` apart.
    """
    inside = (times_ns >= window_ns[0]) & (times_ns < window_ns[1])
    times, chosen = times_ns[inside], values[inside]
    fine = np.zeros(len(times), bool)
    for edge in edges_ns:
        fine |= np.abs(times - edge) <= _FINE_NS
    rows = [*zip(times[fine].tolist(), chosen[fine].tolist(), strict=True)]
    rows += _seconds(times[~fine], chosen[~fine])
    return _lines(sorted(rows), start_ns, apart_s)


def _seconds(times: Indices, values: Floats) -> list[tuple[int, float]]:
    """Return the mean of each second that has a known value, in the middle of the second."""
    known = ~np.isnan(values)
    seconds, where = np.unique(times[known] // 10**9, return_inverse=True)
    sums = np.bincount(where, values[known], minlength=len(seconds))
    means = sums / np.maximum(np.bincount(where, minlength=len(seconds)), 1)
    return [(int(s) * 10**9 + 5 * 10**8, float(m)) for s, m in zip(seconds, means, strict=True)]


def _lines(rows: Sequence[tuple[int, float]], start_ns: int, apart_s: float) -> list[Points]:
    """Return lines without the unknown values."""
    known = [((time - start_ns) / 1e9, value) for time, value in rows if not np.isnan(value)]
    breaks = [i + 1 for i, (a, b) in enumerate(pairwise(known)) if b[0] - a[0] > apart_s]
    edges = [0, *breaks, len(known)]
    return [known[first:last] for first, last in pairwise(edges) if last > first]
