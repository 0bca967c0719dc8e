"""When to ask the API again after it said no, and whether that was said."""

from __future__ import annotations

import logging

from reveal_contract.kube.errors import ApiError, UnavailableError
from reveal_contract.runtime.backoff import HALF_JITTER, delay, spread

log = logging.getLogger(__name__)

FIRST_S, LONGEST_S = 0.5, 60.0
REFUSED_FIRST_S = 5.0  # somebody must grant or install something


def pause_s(failures: int, first_s: float) -> float:
    """Before the next try, after so many in a row: doubled each time, with half of it jitter."""
    return spread(delay(failures, first_s, LONGEST_S), HALF_JITTER)


class Pace:
    """Pauses that double, with half of each jitter; says once that it is away, and back."""

    def __init__(self) -> None:
        self.up = True
        self._failures = 0
        self._until_s = 0.0
        self._said = ""

    def may(self, now_s: float) -> bool:
        return now_s >= self._until_s

    def left(self, now_s: float) -> float:
        """Seconds until the next try."""
        return max(0.0, self._until_s - now_s)

    def worked(self) -> None:
        if self._said:
            log.info("the Kubernetes API takes reports again")
        self.up, self._failures, self._until_s, self._said = True, 0, 0.0, ""

    def failed(self, error: ApiError, now_s: float) -> None:
        away = isinstance(error, UnavailableError)
        pause = pause_s(self._failures, FIRST_S if away else REFUSED_FIRST_S)
        if isinstance(error, UnavailableError):
            pause = max(pause, min(error.retry_after_s, LONGEST_S))
        self._until_s = now_s + pause
        self._failures += 1
        kind = type(error).__name__
        if kind != self._said:
            what = "is away" if away else "refuses"
            log.warning("the Kubernetes API %s, reports wait: %s", what, error)
        self.up, self._said = False, kind
