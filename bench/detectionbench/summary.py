"""Figures of one detector on the machines of one data set."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmark_report import Row
from detectionbench.alarm_free_days import Operation, Watch, for_recall
from detectionbench.dataset import Machine, part
from detectionbench.detectors import Detector
from detectionbench.metrics import (
    Alarms,
    alarms,
    auc_pr,
    found_within_budget,
    hit_rate,
    vus_pr,
)


@dataclass(frozen=True)
class Measured:
    """One detector on one machine; ``hits`` are (Hit@100, Hit@150, top-1) of each cause."""

    auc_pr: float
    vus_pr: float
    found_within_budget: float
    alarms: Alarms
    hits: tuple[tuple[float, float, float], ...]
    watch: Watch
    loud_days: float
    seconds: float


def measure(machine: Machine, detector: Detector) -> Measured:
    """Judge the labelled half, and the second half of training by the first."""
    started = time.process_time()
    spans = [(cause.first, cause.end) for cause in machine.causes]
    judged = detector.judge(machine.train, machine.test, spans)
    seconds = time.process_time() - started
    half = len(machine.train) // 2
    first, second = part(machine.train, 0, half), part(machine.train, half, len(machine.train))
    healthy = detector.judge(first, second, [])
    # the same models for both, as a threshold is swept over the two together
    beside = detector.judge(first, machine.test, [])
    day = machine.day
    return Measured(
        auc_pr=auc_pr(machine.label, judged.score),
        vus_pr=vus_pr(machine.label, judged.score),
        found_within_budget=found_within_budget(machine.label, judged.score, day),
        alarms=alarms(machine.label, judged.flags, day),
        hits=tuple(
            _hits(ranking, cause.metrics)
            for ranking, cause in zip(judged.rankings, machine.causes, strict=True)
        ),
        watch=Watch(healthy.score, beside.score, machine.label, day),
        loud_days=_loud(healthy.flags, day),
        seconds=seconds,
    )


def summarise(measured: Sequence[Measured]) -> Row:
    """Means over machines; events, causes and days pooled over all of them."""
    events = [each.alarms.events for each in measured]
    hits = np.array([hit for each in measured for hit in each.hits])
    delays = [delay for each in measured for delay in each.alarms.delays]
    quiet: Operation = for_recall([each.watch for each in measured], 0.5)
    away = sum(each.alarms.quiet_days for each in measured)
    return {
        "AUC-PR": _mean([each.auc_pr for each in measured]),
        "VUS-PR": _mean([each.vus_pr for each in measured]),
        "ev@1": float(np.average([each.found_within_budget for each in measured], weights=events)),
        "quiet@50": quiet.quiet,
        "false/day@50": quiet.false_per_day,
        "cut@50": quiet.threshold,
        "found": sum(each.alarms.found for each in measured) / max(1, sum(events)),
        "false/day": sum(each.alarms.false for each in measured) / away,
        "quiet days": 1.0 - _mean([each.loud_days for each in measured]),
        "delay": float(np.median(delays)) if delays else float("nan"),
        **dict(zip(("Hit@100", "Hit@150", "top-1"), hits.mean(0).tolist(), strict=True)),
        "seconds": _mean([each.seconds for each in measured]),
    }


def _hits(ranking: Sequence[int], truth: np.ndarray) -> tuple[float, float, float]:
    first, wide = (hit_rate(ranking, truth, factor) for factor in (1.0, 1.5))
    return first, wide, float(truth[ranking[0]])


def _loud(flags: np.ndarray, day: int) -> float:
    days = len(flags) // day
    return float(flags[: days * day].reshape(days, day).any(1).mean())


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))
