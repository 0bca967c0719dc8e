"""What is done to the jobs of a session, and when: seconds since it began."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

LEARNED_S = 190.0  # before it a job is locked and its normal step learned
_REST_S = 22.0
# percent and seconds: small ones hold a window of 60 s and its margins, wherever it begins
_EPISODES = ((2.0, 70.0), (3.0, 70.0), (6.0, 45.0), (10.0, 40.0), (30.0, 40.0))
_HOG_S = 40.0


@dataclass(frozen=True)
class Episode:
    """A time in which steps take ``percent`` longer by their own code; 0 where others did it."""

    begin: float
    end: float
    percent: float


@dataclass(frozen=True)
class JobPlan:
    """One training job: step length in s, ranks, what it runs on.

    A step is ``accumulate`` times a batch, ``passes`` forward and backward passes, and a wait.
    """

    name: str
    period: float
    ranks: int = 1
    framework: str = "numpy"
    accumulate: int = 1
    passes: int = 1
    episodes: tuple[Episode, ...] = ()


@dataclass
class Session:
    """What a recording holds; times of the wall clock in ns."""

    start_ns: int
    end_ns: int = 0
    jobs: list[JobPlan] = field(default_factory=list)
    hog: Episode | None = None
    bystanders: list[str] = field(default_factory=list)

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self), indent=1) + "\n")


def read(path: Path) -> Session:
    """Parse what ``save`` wrote."""
    row = json.loads(path.read_text())
    jobs = [
        JobPlan(**{**job, "episodes": tuple(Episode(**episode) for episode in job["episodes"])})
        for job in row["jobs"]
    ]
    hog = Episode(**row["hog"]) if row["hog"] else None
    return Session(row["start_ns"], row["end_ns"], jobs, hog, row["bystanders"])


def episodes(turn: int) -> tuple[Episode, ...]:
    """A job's own slowdowns; each job has them in another order."""
    order = _EPISODES[turn % len(_EPISODES) :] + _EPISODES[: turn % len(_EPISODES)]
    planned, begin = [], LEARNED_S
    for percent, lasts in order:
        planned.append(Episode(begin, begin + lasts, percent))
        begin += lasts + _REST_S
    return tuple(planned)


def hog_after(jobs: list[JobPlan]) -> Episode:
    """CPU hogs beside all jobs, once their own slowdowns are over."""
    begin = max((job.episodes[-1].end for job in jobs if job.episodes), default=LEARNED_S) + _REST_S
    return Episode(begin, begin + _HOG_S, 0.0)
