"""What a fault cost the job beside it, by the job's own log of steps."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from faultbench.recording_index import CaseRow

STEPS = "steps.jsonl"  # beside the recordings
STEPPING = ("train", "gpu")  # workloads that write it
HARM = 0.1  # of its pace: less is within what a job's pace varies by
_SECOND_NS = 1e9
_SETTLE_S = 0.5  # a stressor needs to be there
_AROUND_S = 0.3  # an evaluation or a checkpoint: the steps next to it
_EVALUATION_S = 3.0

Span = tuple[float, float]


@dataclass(frozen=True)
class Steps:
    """When a training job's steps ended, and its breaks; in seconds since the epoch."""

    ends: Sequence[float]
    breaks: Sequence[Span]

    def rate(self, begin: float, end: float) -> float:
        """Steps a second between these times, of those in which the job made steps."""
        paused = sum(max(0.0, min(end, till) - max(begin, since)) for since, till in self.breaks)
        count = sum(begin < step_end <= end for step_end in self.ends)
        return count / (end - begin - paused) if paused < end - begin else 0.0


def read_steps(log: Path) -> Steps:
    """The steps in what ``reveal_cli.workloads.train`` prints."""
    rows = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
    breaks = _apart(_span(row) for row in rows if row["event"] in ("evaluation", "checkpoint"))
    ends = (float(row["time"]) for row in rows if row["event"] == "step")
    return Steps(
        [
            step_end
            for step_end in ends
            if not any(begin < step_end <= end for begin, end in breaks)
        ],
        breaks,
    )


def _span(row: dict[str, float | str]) -> Span:
    """From when to when the job did something else than steps."""
    end = float(row["time"])
    return end - float(row.get("seconds", _EVALUATION_S)) - _AROUND_S, end + _AROUND_S


def _apart(spans: Iterable[Span]) -> list[Span]:
    """Their union: a checkpoint may follow an evaluation."""
    found: list[Span] = []
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1]:
            since, till = found.pop()
            found.append((since, max(till, end)))
        else:
            found.append((begin, end))
    return found


def steps_of(folder: Path, workload: str) -> Steps | None:
    """Those of a recorded training job; none where the job has no steps or wrote none down."""
    log = folder / STEPS
    return read_steps(log) if workload in STEPPING and log.exists() else None


def lost(steps: Steps, case: CaseRow) -> float:
    """The share of its pace that the job lost while the fault was there, against just before."""
    begin, onset, offset = (
        moment / _SECOND_NS for moment in (case.begin_ns, case.onset_ns, case.offset_ns)
    )
    before, during = steps.rate(begin, onset), steps.rate(onset + _SETTLE_S, offset)
    return 1 - during / before if before else 0.0
