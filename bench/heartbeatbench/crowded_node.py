"""A node of 40 subjects: a job that starts late, other jobs, and programs whose use scatters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from reveal_analyzer.heartbeat.job_selection import MOST_JOBS
from reveal_contract.channels import ChannelTable
from reveal_contract.wire import Message
from support.heartbeat_nodes import FINE_HZ, JOB, CpuUser, HeartbeatNode, Job

_SUBJECTS, _JOBS = 40, 8
_CPUS = 2  # that a job with this many processes keeps busy
_MOST_CPUS, _LEAST_CPUS = 0.6, 0.03  # of the other subjects
_SCATTER = 0.2  # of a subject's use, from second to second
_PERIODS = 0.3, 4.0  # s


@dataclass(frozen=True)
class Program:
    """A program without a rhythm, whose use of CPUs scatters."""

    cpus: float
    seed: int

    def clock(self, seconds: int, rate: int = FINE_HZ) -> np.ndarray:
        """CPU time used in each sample, in s."""
        draw = np.random.default_rng(self.seed)
        uses = self.cpus * np.clip(draw.normal(1, _SCATTER, seconds), 0, None)
        bursts = draw.exponential(1.0, seconds * rate)
        return np.repeat(uses, rate) / rate * bursts


@dataclass(frozen=True)
class _Started:
    """A job of several processes that starts after some seconds."""

    job: Job
    start: int

    def clock(self, seconds: int, rate: int = FINE_HZ) -> np.ndarray:
        """CPU time used in each sample, in s."""
        idle = np.zeros(self.start * rate)
        return np.concatenate([idle, _CPUS * self.job.clock(seconds - self.start, rate)])


def slices(job: Job, start: int, seconds: int) -> Iterator[tuple[Message, ChannelTable]]:
    """Yield the slices of a node on which a job starts; it runs for so many seconds.

    The busiest subjects are read at 50 Hz.  The job is one of them.
    """
    others = _others(job.seed)
    busiest = list(others)[: MOST_JOBS - 1]
    before = HeartbeatNode(others, start, {*busiest, list(others)[MOST_JOBS - 1]})
    after = HeartbeatNode({**others, JOB: _Started(job, start)}, start + seconds, {*busiest, JOB})
    yield from ((message, before.table) for message in before.slices())
    yield from ((message, after.table) for message in islice(after.slices(), start, None))


def _others(seed: int) -> dict[str, CpuUser]:
    """Return the other subjects, the busiest first."""
    draw = np.random.default_rng((seed, _SUBJECTS))
    uses = np.geomspace(_MOST_CPUS, _LEAST_CPUS, _SUBJECTS - 1)
    jobs = set(draw.choice(_SUBJECTS - 1, _JOBS, replace=False).tolist())
    return {
        f"/subject{number}": (_job if number in jobs else _program)(draw, use)
        for number, use in enumerate(uses.tolist())
    }


def _job(draw: np.random.Generator, use: float) -> Job:
    return Job(
        float(draw.uniform(*_PERIODS)), use, float(draw.uniform(0.005, 0.05)),
        seed=int(draw.integers(1 << 30)),
    )  # fmt: skip


def _program(draw: np.random.Generator, use: float) -> Program:
    return Program(use, int(draw.integers(1 << 30)))
