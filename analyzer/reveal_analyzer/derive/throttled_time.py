"""Time of CPU quotas where the kernel loses it: the ledger's is used, which asks the threads.

Since Linux 6.18 a quota throttles tasks one by one, as each returns to user mode, and
``throttled_usec`` counts from the first of them on.  Beside others on a busy CPU it was seen to
count a tenth of the time, for a minute and more, while ``nr_throttled`` and the use of the CPU
stayed those of a subject at its quota (measured: 25 to 105 ms a second in place of 550).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.arrays import Floats
from reveal_contract import ledger
from reveal_contract.channels import Channel

TIME, PERIODS = "cpu.subject.throttled_time", "cpu.subject.throttled_periods"


@dataclass(frozen=True)
class ThrottledChannels:
    """Indices of channels, a row for each subject: time, periods, time of the ledger."""

    time: NDArray[np.intp]
    periods: NDArray[np.intp]
    ledger: NDArray[np.intp]


def throttled_channels(
    channels: Sequence[Channel], kept: Sequence[int]
) -> ThrottledChannels | None:
    """Return the channels of subjects of which all three are kept; None if there is none."""
    found: dict[str, dict[str, int]] = {TIME: {}, PERIODS: {}, ledger.THROTTLED: {}}
    for index in kept:
        if (of_metric := found.get(channels[index].metric)) is not None:
            of_metric[channels[index].instance] = index
    subjects = [each for each in found[TIME] if all(each in rows for rows in found.values())]
    if not subjects:
        return None
    return ThrottledChannels(
        *(np.array([rows[subject] for subject in subjects], np.intp) for rows in found.values())
    )


def add_lost_time(seconds: Floats, of: ThrottledChannels) -> float:
    """Add to the channels in ``seconds`` what the kernel lost; return the sum, in ns.

    Nothing is added to a subject that the kernel did not throttle in this second, or of which a
    channel was not read.
    """
    lost = seconds[of.ledger] - seconds[of.time]
    lost[~((lost > 0) & (seconds[of.periods] > 0))] = 0.0
    seconds[of.time] += lost
    return float(lost.sum())
