"""Made-up jobs whose steps are known: their CPU clock as a collector reads it, and messages."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Kind
from reveal_contract.time_units import NS_PER_SECOND
from reveal_contract.wire import Message
from support.synthetic_node import BOOT

FINE_HZ, TICK_HZ = 50, 10
JOB = "/train"


class CpuUser(Protocol):
    """A subject of a node."""

    def clock(self, seconds: int, rate: int = FINE_HZ) -> np.ndarray:
        """CPU time used in each sample, in s."""


def _unchanged(_: float) -> float:
    return 1.0


@dataclass(frozen=True)
class Longer:
    """Factor of a step: it takes ``percent`` longer from ``onset`` s on."""

    percent: float
    onset: float

    def __call__(self, second: float) -> float:
        return 1 + self.percent / 100 * (second >= self.onset)


@dataclass(frozen=True)
class Job:
    """Steps of ``period`` s, busy for ``duty`` of each, that differ by ``jitter`` of themselves.

    ``slower`` gives the factor of a step by the time it begins.  Each ``evaluates`` s (0: never)
    there are two seconds of shorter steps, as an evaluation has.  A step of several ``parts``
    is as many small ones and an update; what makes it longer comes after them.  ``pause`` is when
    the job stops, and for how many seconds; ``saves`` how often it writes a checkpoint (s, 0:
    never), and for how many seconds it does nothing else then.
    """

    period: float
    duty: float = 0.4
    jitter: float = 0.03
    slower: Callable[[float], float] = _unchanged
    evaluates: float = 25.0
    seed: int = 0
    parts: int = 1
    pause: tuple[float, float] = (0.0, 0.0)
    saves: tuple[float, float] = (0.0, 0.0)

    def steps(self, seconds: float) -> list[tuple[float, float]]:
        """When each step begins and how long it takes."""
        draw, begin, result = np.random.default_rng(self.seed), 0.0, []
        stop, stopped_s = self.pause
        interval, saving_s = self.saves
        saved = interval
        while begin < seconds:
            if stopped_s and begin >= stop:
                begin, stopped_s = begin + stopped_s, 0.0
            if interval and begin >= saved:
                begin, saved = begin + saving_s, saved + interval
            length = self.period * self.slower(begin) * max(0.2, draw.normal(1, self.jitter))
            if self.evaluates and begin % self.evaluates < 2:
                length = self.period * 0.4
            result.append((begin, length))
            begin += length
        return result

    def clock(self, seconds: int, rate: int = FINE_HZ) -> np.ndarray:
        """CPU time used in each sample, in s."""
        bursts = [burst for step in self.steps(seconds + 5) for burst in self._bursts(*step)]
        edges = np.ravel([(begin, begin + busy) for begin, busy in bursts])
        used = np.cumsum(np.ravel([(0.0, busy) for _, busy in bursts]))
        return np.diff(np.interp(np.arange(seconds * rate + 1) / rate, edges, used))

    def _bursts(self, begin: float, length: float) -> list[tuple[float, float]]:
        """When its CPU is busy in a step, and for how long."""
        if self.parts == 1:
            return [(begin, self.duty * length)]
        small = 0.92 * min(length, length / self.slower(begin)) / self.parts
        update = begin + self.parts * small
        return [*((begin + part * small, self.duty * small) for part in range(self.parts)),
                (update, 0.05 * self.period)]  # fmt: skip

    def mean_step(self, begin: float, end: float) -> float:
        """The mean step between two times, evaluations left out."""
        inside = [
            length
            for start, length in self.steps(end + 1)
            if begin <= start and start + length <= end
        ]
        middle = float(np.median(inside))
        return float(np.mean([length for length in inside if 0.6 < length / middle < 1.4]))


@dataclass
class HeartbeatNode:
    """A node of subjects: one slice a second with each one's CPU clock, at 50 Hz or 10 Hz.

    ``fine`` says whether it is read at 50 Hz, or of which subjects.
    """

    jobs: Mapping[str, CpuUser]
    seconds: int
    fine: bool | Collection[str] = True
    node: str = "n1"
    others: tuple[Channel, ...] = ()
    table: ChannelTable = field(init=False)

    def __post_init__(self) -> None:
        channels = []
        for name in self.jobs:
            channels.append(Channel("cpu.subject.usage", name, Kind.COUNTER, 1.0))
            if self._is_fine(name):
                channels += [
                    Channel("cpu.subject.usage.fine", f"{name}#{index}", Kind.COUNTER, 1000.0)
                    for index in range(1, 6)
                ]
        self.table = ChannelTable((*channels, *self.others), ())

    def _is_fine(self, name: str) -> bool:
        return self.fine if isinstance(self.fine, bool) else name in self.fine

    def slices(self, values: Callable[[int], dict[str, float]] = lambda _: {}) -> Iterator[Message]:
        """``values``: what other channels hold in a second, by label; 0 where not said."""
        clocks = {name: job.clock(self.seconds) for name, job in self.jobs.items()}
        for second in range(self.seconds):
            columns = []
            for name, clock in clocks.items():
                fine = clock[second * FINE_HZ : (second + 1) * FINE_HZ].reshape(TICK_HZ, 5)
                columns.append(np.round(fine.sum(axis=1, keepdims=True) * 1e9))
                if self._is_fine(name):
                    columns.append(np.round(fine * 1e6))
            given = values(second)
            levels = [given.get(channel.label, 0.0) for channel in self.others]
            columns.append(np.tile(np.array(levels, float), (TICK_HZ, 1)))
            fast = np.concatenate(columns, axis=1).astype(np.int64)
            yield Message(
                node=self.node, boot=BOOT, sequence=second,
                start_ns=(1_700_000_000 + second) * NS_PER_SECOND, tick_us=100_000,
                table=self.table.key, fast=fast, slow=np.zeros(0, np.int64),
                fast_missing=np.zeros(fast.shape, bool), slow_missing=np.zeros(0, bool),
            )  # fmt: skip
