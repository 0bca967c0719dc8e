"""CPU uses of made-up subjects that scatter, each in another way."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

Use = Callable[[int, int], float]  # number of the subject, second -> CPUs

_DRIFT_S = 60.0  # time in which a drifting use forgets its past
_DRIFT_SPREAD = 0.5  # of its logarithm


def uses(rng: random.Random) -> dict[str, Use]:
    """Return the uses by what the table says of them."""
    drifts: dict[int, float] = {}
    phases = [rng.random() for _ in range(1000)]

    def drifting(subject: int, _: int) -> float:
        kept = math.exp(-1 / _DRIFT_S)
        step = rng.gauss(0, _DRIFT_SPREAD * math.sqrt(1 - kept**2))
        drifts[subject] = kept * drifts.get(subject, 0.0) + step
        return 0.2 * math.exp(drifts[subject])

    def in_turn(subject: int, second: int) -> float:
        return 2.0 if (second + 600 * phases[subject]) % 600 < 20 else 0.005

    return {
        "all alike, by 10 %": lambda subject, second: 0.33 * max(0.0, rng.gauss(1, 0.1)),
        "falling as 1/n, by 20 %": lambda subject, second: (
            2 / (subject + 1) * max(0.0, rng.gauss(1, 0.2))
        ),
        "changing by half within a minute": drifting,
        "in turn, 20 s of each 10 min": in_turn,
    }
