"""Another detector, given as a Python file, judged on the same npz recordings in the same run.

The file must have ``play(path)``: a list of (second, verdict) at which it would have said
something, ``verdict.subsystem`` being the subsystem it names.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from faultbench.evaluation import healthy_seconds
from faultbench.sessions import GRACE_S, SETTLE_S, Session

Play = Callable[[Path], list[tuple[int, Any]]]


class BesideError(ValueError):
    """The file holds no detector that could be played; the text says why."""


@dataclass(frozen=True)
class Beside:
    """What the other detector made of one session of one case, or of a healthy one."""

    session: str
    is_case: bool
    found: float | None
    subsystem_right: bool
    false: int
    healthy_seconds: float


@cache
def load(path: Path) -> Play:
    """``play`` of a Python file."""
    spec = importlib.util.spec_from_file_location("reveal_bench_beside", path)
    if spec is None or spec.loader is None or not path.exists():
        raise BesideError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    play = getattr(module, "play", None)
    if not callable(play):
        raise BesideError(f"{path} has no function play(path)")
    return play  # type: ignore[no-any-return]


def judge(session: Session, detector: Path) -> Beside:
    """Play one session; the same windows as for ours decide what is found and what is false."""
    verdicts = [(second + 1.0, verdict) for second, verdict in load(detector)(session.path)]
    watched = [each for each in session.read() if each.end > session.warmup]
    healthy = healthy_seconds(session.cases, watched)
    if not session.cases:
        return Beside(session.name, False, None, False, len(verdicts), healthy)
    case = session.cases[0]
    right = [
        (seconds, verdict)
        for seconds, verdict in verdicts
        if case.onset < seconds <= case.offset + GRACE_S
    ]
    false = sum(1 for seconds, _ in verdicts if not case.onset < seconds <= case.offset + SETTLE_S)
    if not right:
        return Beside(session.name, True, None, False, false, healthy)
    seconds, verdict = right[0]
    named = verdict.subsystem in {each.value for each in case.subsystems}
    return Beside(session.name, True, seconds - case.onset, named, false, healthy)
