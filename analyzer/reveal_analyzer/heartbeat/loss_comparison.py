"""Compare the slowdown of a job by its steps with that by its lost time.

Lost time is what a job waited for because of the cause.  Steps also become longer where threads run
slower, or wait for a thread of the same job that lost time; and not all lost time delays a step.
"""

from __future__ import annotations

from collections.abc import Iterable

from reveal_contract.finding import Impact, JobLoss

_POINTS = 5.0  # beyond the interval of the steps


def comparison_note(impact: Impact, losses: Iterable[JobLoss]) -> str:
    """Return why the two slowdowns of a job differ; empty if they agree or only one is known."""
    loss = next((each for each in losses if each.subject == impact.subject), None)
    if loss is None:
        return ""
    both = (
        f"steps of {impact.subject} take {impact.slowdown_percent:.0f} % longer, lost time is worth"
        f" {loss.slowdown_percent:.0f} %"
    )
    if loss.slowdown_percent < impact.low_percent - _POINTS:
        return f"{both}: it also runs slower, or its threads wait for each other"
    if loss.slowdown_percent > impact.high_percent + _POINTS:
        return f"{both}: not all of what it lost delays its steps"
    return ""
