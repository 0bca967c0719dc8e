"""The status of a profile: what it should say, and the write where it says something else."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from reveal_contract.kube.errors import NOT_FOUND, ApiError
from reveal_contract.kube.names import API_VERSION, PROFILE_KIND
from reveal_operator.api import Api
from reveal_operator.conditions import Facts, conditions
from reveal_operator.metrics import Metrics
from reveal_operator.reports import Tally
from reveal_operator.seen import ProfileSeen

Status = Mapping[str, Any]


def status_of(facts: Facts, tally: Tally | None, before: Status, now: str) -> dict[str, Any]:
    """All that the operator says; ``telemetry`` is the analyzer's.

    Before reports are counted their numbers stay as they were.
    """
    known = before.get("conditions") or ()
    made = facts.collectors
    open_ones = tally.open if tally else before.get("openFindings", 0)
    return {
        "observedGeneration": facts.generation,
        "conditions": conditions(facts, known, now),
        "desiredNodes": made.desired if made else 0,
        "readyNodes": made.ready if made else 0,
        "openFindings": open_ones,
        "reports": tally.reports if tally else before.get("reports", 0),
    }


class Statuses:
    """Writes statuses, each only where it is news."""

    def __init__(self, api: Api, metrics: Metrics) -> None:
        self._api, self._metrics = api, metrics
        self._written: dict[str, tuple[str, str, dict[str, Any]]] = {}

    def current(self, profile: ProfileSeen) -> Status:
        """What the status says: what we wrote last, while the watch has not shown it yet."""
        uid, version, status = self._written.get(profile.name, ("", "", {}))
        return status if (uid, version) == (profile.uid, profile.version) else profile.status

    async def write(self, profile: ProfileSeen, status: dict[str, Any]) -> None:
        """Nothing where it says so already, or where the profile is gone.  Raises ``ApiError``."""
        current = self.current(profile)
        if says(current, status):
            return
        manifest = {
            "apiVersion": API_VERSION,
            "kind": PROFILE_KIND,
            # of this profile, and of no other one that took its name since
            "metadata": {"name": profile.name, "uid": profile.uid},
            "status": status,
        }
        try:
            await asyncio.to_thread(self._api.apply, manifest, "status")
        except ApiError as error:
            if error.status == NOT_FOUND:
                return
            raise
        self._metrics.status_written()
        telemetry = profile.status.get("telemetry")
        kept = {"telemetry": telemetry} if telemetry else {}
        self._written[profile.name] = (profile.uid, profile.version, {**status, **kept})

    def forget(self, name: str) -> None:
        self._written.pop(name, None)


def says(current: Status, status: Status) -> bool:
    """Whether the one says the other; conditions of other types are somebody else's."""
    plain = [key for key in status if key != "conditions"]
    known = {one.get("type"): one for one in current.get("conditions") or ()}
    return all(current.get(key) == status[key] for key in plain) and all(
        known.get(one["type"]) == one for one in status["conditions"]
    )
