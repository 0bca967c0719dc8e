"""The order of a roll-out of other images: analyzers first, then collectors.

Collectors of a newer version may send what analyzers of the older one do not know; the other way
round nothing is lost.  Where no analyzer is available, nobody reads, and there is nothing to lose.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from reveal_operator.api import Manifest
from reveal_operator.drift import intent_of_live
from reveal_operator.observed import ObservedObject, ObservedProfile, image_of, own_by_kind

PATIENCE_S = 900.0  # after which collectors are replaced whatever the analyzers do
_COLLECTORS, _ANALYZERS = "DaemonSet", "Deployment"

_log = logging.getLogger(__name__)


class RolloutOrder:
    """Remembers since when the collectors of each profile wait for its analyzers."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since: dict[str, float] = {}

    def waiting_s(
        self,
        profile: ObservedProfile,
        desired: Sequence[Manifest],
        observed: Sequence[ObservedObject],
    ) -> float:
        """Return for how long at most the collectors have to wait; 0 if they do not."""
        if not _must_wait(profile, desired, observed):
            self.forget(profile.name)
            return 0.0
        if profile.name not in self._since:
            text = "%s: collectors get their new image when the analyzers have theirs"
            _log.info(text, profile.name, extra={"object": profile.reference})
        since = self._since.setdefault(profile.name, self._clock())
        return max(0.0, since + PATIENCE_S - self._clock())

    def forget(self, profile: str) -> None:
        """Forget a profile."""
        self._since.pop(profile, None)


def without_collectors(desired: Sequence[Manifest]) -> tuple[Manifest, ...]:
    """Return the manifests that are applied while the collectors wait."""
    return tuple(each for each in desired if each["kind"] != _COLLECTORS)


def _must_wait(
    profile: ObservedProfile, desired: Sequence[Manifest], observed: Sequence[ObservedObject]
) -> bool:
    manifests = {each["kind"]: each for each in desired}
    own = own_by_kind(profile, observed)
    collectors, analyzers = own.get(_COLLECTORS), own.get(_ANALYZERS)
    if collectors is None or analyzers is None or analyzers.workload is None:
        return False
    if not {_COLLECTORS, _ANALYZERS} <= manifests.keys():
        return False
    if collectors.image == image_of(manifests[_COLLECTORS]) or not analyzers.workload.available:
        return False
    is_applied = analyzers.intent == intent_of_live(manifests[_ANALYZERS])
    return not (is_applied and analyzers.workload.is_complete)
