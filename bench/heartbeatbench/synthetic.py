"""Synthetic jobs whose steps are known: slowdowns of many sizes, gaps, restarts, healthy jobs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace

import numpy as np

from heartbeatbench import crowded_node
from reveal_analyzer.heartbeat.findings import JobMonitor
from reveal_analyzer.subjects.history import SubjectHistory
from reveal_contract.channels import ChannelTable
from reveal_contract.finding import FindingChange, FindingUpdate, Impact
from reveal_contract.time_units import NS_PER_SECOND
from reveal_contract.wire import Message
from support.heartbeat_nodes import JOB, HeartbeatNode, Job, Longer

SIZES = (3, 5, 10, 20, 40, 70, 75, 100, 150, 200)  # percent
_PERIODS = (0.137, 0.31, 0.463, 0.77, 1.03, 1.61, 2.3, 3.1, 5.3)
_HEALTHY_PERIODS = (0.2, 0.31, 0.463, 0.77, 1.03, 1.61, 2.3, 3.1, 5.3, 7.1, 10.0)
_DUTIES = (0.15, 0.3, 0.6)
_STARTS = (30, 90, 200)  # s after the node's other subjects
_SAVES = ((0.0, 0.0), (60.0, 4.0), (150.0, 12.0))  # s between checkpoints, s of each
_ONSETS = (60, 80, 110, 140, 170, 240)
_GAPS = (1, 2, 3, 4, 8, 15, 30)
_SLOWDOWNS, _RESTARTS, _SUBJECTS, _HEALTHY = range(4)  # kinds of scenarios
_HEALTHY_S = 600  # of each job
_SHORT_S = 0.45  # a shorter step is read at 50 Hz
_LONG_S = 1.25  # a longer step is not readable by its first ten seconds
_LONG_ONSET_S = 150
_LASTS_S = 170
_POINTS = 2.0
_BEGIN_NS = 1_700_000_000 * NS_PER_SECOND


@dataclass(frozen=True)
class Scenario:
    """One job of a node: what happens to it, and which slices are lost.

    Times are those of the job.  ``start`` is when it starts on a node of 40 subjects; ``None``: it
    is alone.
    """

    name: str
    job: Job
    seconds: int
    percent: float = 0.0
    onset: float = 0.0
    gap: range = range(0)
    fine: bool = True
    start: int | None = None


@dataclass
class Outcome:
    """What was reported of a scenario's job; ``others``: slowdowns of other subjects."""

    scenario: Scenario
    opened: list[float] = field(default_factory=list)  # s
    resolved: list[float] = field(default_factory=list)
    impact: Impact | None = None
    others: int = 0

    @property
    def reported(self) -> bool:
        """Whether the slowdown was reported, and not before it began."""
        return bool(self.opened) and min(self.opened) >= self.scenario.onset

    @property
    def open_to_the_end(self) -> bool:
        """Whether one finding reported it until the end."""
        return len(self.opened) == 1 and not self.resolved

    @property
    def error(self) -> float | None:
        """The reported slowdown less the true one, in points."""
        if self.impact is None:
            return None
        job, end = self.scenario.job, self.scenario.seconds
        stop, stopped_s = job.pause
        before = job.mean_step(5, stop or self.scenario.onset)
        after = job.mean_step(max(end - self.impact.window_s, stop + stopped_s), end)
        return float(self.impact.slowdown_percent - 100 * (after / before - 1))

    @property
    def right(self) -> bool:
        return self.error is not None and abs(self.error) <= _POINTS


def slowdowns(count: int, seed: int = 0) -> Iterator[Scenario]:
    """Yield slowdowns of all sizes and onsets, every other with a gap near its begin."""
    return (_slowdown(_draw(seed, _SLOWDOWNS, number), number) for number in range(count))


def restarts(count: int, seed: int = 0) -> Iterator[Scenario]:
    """Yield runs that end and begin again, with longer steps, within a minute."""
    return (_restart(_draw(seed, _RESTARTS, number), number) for number in range(count))


def among_subjects(count: int, seed: int = 0) -> Iterator[Scenario]:
    """Yield slowdowns of a job that starts late on a node of 40 subjects."""
    for number in range(count):
        draw = _draw(seed, _SUBJECTS, number)
        scenario, start = _slowdown(draw, number), int(draw.choice(_STARTS))
        yield replace(scenario, name="40 subjects", start=start, fine=True)


def healthy(hours: float, seed: int = 0) -> Iterator[Scenario]:
    """Yield healthy jobs of many shapes, whose steps scatter by up to 5 %."""
    for number in range(math.ceil(hours * 3600 / _HEALTHY_S)):
        draw = _draw(seed, _HEALTHY, number)
        job = _job(draw, most_jitter=0.05, periods=_HEALTHY_PERIODS)
        job = replace(
            job, parts=int(draw.choice((1, 1, 2, 3))),
            saves=_SAVES[int(draw.integers(len(_SAVES)))],
        )  # fmt: skip
        yield Scenario("healthy", job, _HEALTHY_S, fine=_is_fine(number, job))


def _draw(seed: int, kind: int, number: int) -> np.random.Generator:
    """Return the random numbers of one scenario: no two scenarios of any seeds share them."""
    return np.random.default_rng((seed, kind, number))


def _slowdown(draw: np.random.Generator, number: int) -> Scenario:
    percent, job = SIZES[number % len(SIZES)], _job(draw, most_jitter=0.02)
    onset = int(draw.choice(_ONSETS))
    if job.period > _LONG_S:
        onset = max(onset, _LONG_ONSET_S)
    gap = range(0)
    if number // len(SIZES) % 2:
        begin = onset + int(draw.integers(-20, 60))
        gap = range(begin, begin + int(draw.choice(_GAPS)))
    return Scenario(
        f"{percent} %", _slower(job, percent, onset), onset + _LASTS_S, percent, onset, gap,
        fine=_is_fine(number, job),
    )  # fmt: skip


def _restart(draw: np.random.Generator, number: int) -> Scenario:
    percent, job = SIZES[1 + number % (len(SIZES) - 1)], _job(draw, most_jitter=0.02)
    stop, pause = float(draw.integers(160, 260)), float(draw.choice((8, 15, 30, 45)))
    job = replace(_slower(job, percent, stop), pause=(stop, pause))
    return Scenario(f"restart {percent} %", job, int(stop + pause) + _LASTS_S, percent, stop)


def _is_fine(number: int, job: Job) -> bool:
    """Return whether a job is read at 50 Hz: two of three are, and all with short steps."""
    return bool(number % 3) or job.period < _SHORT_S


# the scenarios of a kind of N slowdowns, by N and seed
KINDS: Mapping[str, Callable[[int, int], Iterator[Scenario]]] = {
    "slowdowns": slowdowns,
    "restarts": lambda count, seed: restarts(count // 4, seed),
    "subjects": lambda count, seed: among_subjects(count // 5, seed),
    "healthy": lambda count, seed: healthy(count / 20, seed),
}


def all_played(scenarios: Iterable[Scenario]) -> list[Outcome]:
    """Return what was reported of each scenario; they are played in one process a CPU."""
    with ProcessPoolExecutor() as pool:
        return list(pool.map(played, scenarios))


def played(scenario: Scenario) -> Outcome:
    """Return what was reported of a scenario."""
    outcome = Outcome(scenario)
    for second, update in _updates(scenario):
        if update.finding.impact is None:
            continue
        opened = update.change is FindingChange.OPENED
        if update.finding.impact.subject != JOB:
            outcome.others += opened
            continue
        if opened:
            outcome.opened.append(second)
        elif update.change is FindingChange.RESOLVED:
            outcome.resolved.append(second)
        outcome.impact = update.finding.impact
    return outcome


def _updates(scenario: Scenario) -> Iterator[tuple[float, FindingUpdate]]:
    monitor, second = JobMonitor("bench", (), SubjectHistory()), 0.0
    start = scenario.start or 0
    for message, table in _slices(scenario):
        if message.sequence - start in scenario.gap:
            continue
        second = (message.start_ns - _BEGIN_NS) / NS_PER_SECOND - start
        for update in monitor.update(message, table, None, ()):
            yield second, update
    for update in monitor.finish(()):
        yield second, update


def _slices(scenario: Scenario) -> Iterator[tuple[Message, ChannelTable]]:
    if scenario.start is not None:
        return crowded_node.slices(scenario.job, scenario.start, scenario.seconds)
    node = HeartbeatNode({JOB: scenario.job}, scenario.seconds, scenario.fine)
    return ((message, node.table) for message in node.slices())


def _job(draw: np.random.Generator, most_jitter: float, periods: Sequence[float] = _PERIODS) -> Job:
    return Job(
        period=float(draw.choice(periods)) * float(draw.uniform(0.97, 1.03)),
        duty=float(draw.choice(_DUTIES)),
        jitter=float(draw.uniform(0.005, most_jitter)),
        evaluates=float(draw.choice((0, 25, 40))),
        seed=int(draw.integers(1 << 30)),
    )


def _slower(job: Job, percent: float, onset: float) -> Job:
    return replace(job, slower=Longer(percent, onset))


def rows(outcomes: Sequence[Outcome]) -> list[dict[str, str | float]]:
    """Return one row of figures for each kind of scenario."""
    names = dict.fromkeys(outcome.scenario.name for outcome in outcomes)
    return [_row(name, [o for o in outcomes if o.scenario.name == name]) for name in names]


def _row(name: str, outcomes: Sequence[Outcome]) -> dict[str, str | float]:
    delays = [min(o.opened) - o.scenario.onset for o in outcomes if o.reported]
    good = [o for o in outcomes if o.reported and o.open_to_the_end and o.right]
    return {
        "scenario": name,
        "played": len(outcomes),
        "reported": sum(o.reported for o in outcomes),
        "open to the end": sum(o.open_to_the_end for o in outcomes),
        "within 2 points": sum(o.right for o in outcomes),
        "all three": len(good),
        "of other subjects": sum(o.others for o in outcomes),
        "median delay s": float(np.median(delays)) if delays else 0.0,
    }
