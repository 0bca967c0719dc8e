"""The status of a profile: its desired content, and the write where it differs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from reveal_contract.kube.errors import NOT_FOUND, ApiError
from reveal_contract.kube.names import API_VERSION, PROFILE_KIND
from reveal_operator.api import OperatorApi
from reveal_operator.conditions import ConditionInputs, conditions
from reveal_operator.metrics import OperatorMetrics
from reveal_operator.observed import ObservedProfile
from reveal_operator.report_records import ReportCounts

Status = Mapping[str, Any]


def status_of(
    facts: ConditionInputs, counts: ReportCounts | None, before: Status, now: str
) -> dict[str, Any]:
    """Return all fields of the operator; ``telemetry`` is the analyzer's.

    Before the reports are listed their numbers stay as they were.
    """
    known = before.get("conditions") or ()
    collectors = facts.collectors
    open_findings = counts.open if counts else before.get("openFindings", 0)
    return {
        "observedGeneration": facts.generation,
        "conditions": conditions(facts, known, now),
        "desiredNodes": collectors.desired if collectors else 0,
        "readyNodes": collectors.ready if collectors else 0,
        "openFindings": open_findings,
        "reports": counts.reports if counts else before.get("reports", 0),
    }


class StatusWriter:
    """Writes the status of each profile where it changed."""

    def __init__(self, api: OperatorApi, metrics: OperatorMetrics) -> None:
        self._api, self._metrics = api, metrics
        self._written: dict[str, tuple[str, str, dict[str, Any]]] = {}

    def current(self, profile: ObservedProfile) -> Status:
        """Return the status: the one written last, until the watch shows it."""
        uid, version, status = self._written.get(profile.name, ("", "", {}))
        return status if (uid, version) == (profile.uid, profile.version) else profile.status

    async def write(self, profile: ObservedProfile, status: dict[str, Any]) -> None:
        """Write, unless it is the same or the profile is gone.  Raises ``ApiError``."""
        current = self.current(profile)
        if includes(current, status):
            return
        manifest = {
            "apiVersion": API_VERSION,
            "kind": PROFILE_KIND,
            # the uid: of this profile, and not of another one with its name
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


def includes(current: Status, status: Status) -> bool:
    """Return whether ``current`` has all of ``status``; others own conditions of other types."""
    plain = [key for key in status if key != "conditions"]
    known = {each.get("type"): each for each in current.get("conditions") or ()}
    return all(current.get(key) == status[key] for key in plain) and all(
        known.get(each["type"]) == each for each in status["conditions"]
    )
