"""When to send requests to the API again after an error, and one log line per change."""

from __future__ import annotations

import logging

from reveal_contract.kube.errors import ApiError, UnavailableError
from reveal_contract.runtime.backoff import HALF_JITTER, delay, spread

log = logging.getLogger(__name__)

FIRST_S, LONGEST_S = 0.5, 60.0
REFUSED_FIRST_S = 5.0  # somebody must grant a right or install a resource type first


def pause_s(failures: int, first_s: float) -> float:
    """Return seconds before the next attempt, after so many failures in a row."""
    return spread(delay(failures, first_s, LONGEST_S), HALF_JITTER)


class ApiBackoff:
    """Whether the API accepts requests now; ``up`` is false from the first error on.

    The log has one line when the API fails, or fails otherwise, and one when it recovers.
    """

    def __init__(self) -> None:
        self.up = True
        self._failures = 0
        self._until_s = 0.0
        self._logged = ""  # class of the error that the log has

    def ready(self, now_s: float) -> bool:
        """Whether the pause after the last error is over."""
        return now_s >= self._until_s

    def succeeded(self) -> None:
        """Note that the API accepted the requests."""
        if self._logged:
            log.info("the Kubernetes API accepts reports again")
        self.up, self._failures, self._until_s, self._logged = True, 0, 0.0, ""

    def failed(self, error: ApiError, now_s: float) -> None:
        """Note an error; a server that is unavailable may ask for a longer pause."""
        unavailable = isinstance(error, UnavailableError)
        pause = pause_s(self._failures, FIRST_S if unavailable else REFUSED_FIRST_S)
        if isinstance(error, UnavailableError):
            pause = max(pause, min(error.retry_after_s, LONGEST_S))
        self._until_s = now_s + pause
        self._failures += 1
        kind = type(error).__name__
        if kind != self._logged:
            problem = "is unavailable" if unavailable else "refuses requests"
            log.warning("the Kubernetes API %s, reports wait: %s", problem, error)
        self.up, self._logged = False, kind
