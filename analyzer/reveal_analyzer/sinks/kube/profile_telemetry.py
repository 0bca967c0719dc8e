"""``status.telemetry`` of the profile: written when it changed, at most every 30 seconds."""

from __future__ import annotations

import json
import logging
from typing import Any

import redis

from reveal_analyzer.sinks.kube.api import SinkApi
from reveal_analyzer.stream.redis_connection import OUTAGE
from reveal_analyzer.telemetry.node_records import IsProven
from reveal_analyzer.telemetry.snapshot import Snapshot
from reveal_analyzer.telemetry.states import StateStore, TelemetryState, reporting_nodes, state_of

log = logging.getLogger(__name__)

PUT_SECONDS = 10.0  # between two writes of this analyzer's state to Redis
DEGRADED_SECONDS = 30.0  # between two reads of what collectors report
WRITE_SECONDS = 30.0
CHECK_SECONDS = 300.0  # between two reads of what the API has
UNREACHABLE_SECONDS = 60.0  # without Redis, until an analyzer that never led reports it


def telemetry(state: TelemetryState | None) -> dict[str, Any]:
    """Return the field of the status; None means that the stream cannot be read."""
    known = state or TelemetryState()
    return {
        "streamReachable": state is not None,
        "nodesReporting": known.reporting,
        "nodesLearning": known.learning,
        "silentNodes": list(known.silent),
        "degraded": [
            {"reason": each.reason, "nodes": each.nodes, "message": each.message}
            for each in known.degraded
        ],
    }


class ProfileTelemetry:
    """Writes the telemetry; one thread.  ``step`` raises ``ApiError``, and reports Redis outages.

    Only the leader writes.  While Redis is unavailable there is none: then the analyzer that led
    last writes, or one that has never reached Redis.
    """

    def __init__(self, client: redis.Redis, profile: str, owner: str) -> None:
        self._states = StateStore(client, profile, owner)
        self._profile = profile
        self._put_s = self._degraded_s = self._write_s = self._check_s = 0.0
        self._degraded: Any = ()
        self._written: dict[str, Any] | None = None
        self._led = self._reached = False
        self._began_s: float | None = None

    def check_origin(self, is_proven: IsProven) -> None:
        """Use only what proves its origin of what collectors report."""
        self._states.check_origin(is_proven)

    def step(self, api: SinkApi, snapshot: Snapshot) -> None:
        """Take a snapshot; write the telemetry when it changed and is due."""
        desired = self._desired(snapshot)
        now = snapshot.time_s
        if desired is None or now < self._write_s:
            return
        if now >= self._check_s:
            self._written = self._read(api)
            self._check_s = now + CHECK_SECONDS
        if _same(desired, self._written):
            return
        self._write_s = now + WRITE_SECONDS
        api.apply_profile_status(self._profile, {"telemetry": desired})
        self._written = desired

    def close(self) -> None:
        """Remove this analyzer's state."""
        try:
            self._states.drop()
        except OUTAGE as error:
            log.debug("our state expires by itself: %s", error)

    def _desired(self, snapshot: Snapshot) -> dict[str, Any] | None:
        """Return what the profile should show; None where another analyzer decides."""
        if self._began_s is None:
            self._began_s = snapshot.time_s
        if not snapshot.connected:
            waited = snapshot.time_s - self._began_s
            alone = not self._reached and waited >= UNREACHABLE_SECONDS
            return telemetry(None) if self._led or alone else None
        self._reached = True
        try:
            self._update_state(snapshot)
            self._led = snapshot.leads
            return telemetry(self._states.get()) if snapshot.leads else None
        except OUTAGE as error:  # the reader of the stream logs the outage
            log.debug("the states of the analyzers are not known: %s", error)
            return None

    def _update_state(self, snapshot: Snapshot) -> None:
        now = snapshot.time_s
        if now >= self._degraded_s:
            self._degraded_s = now + DEGRADED_SECONDS
            # the last report of a silent node says nothing about now
            self._degraded = self._states.degraded(reporting_nodes(snapshot))
        if now >= self._put_s:
            self._put_s = now + PUT_SECONDS
            self._states.put(state_of(snapshot, self._degraded))

    def _read(self, api: SinkApi) -> dict[str, Any] | None:
        """Return what the API has: others may have written, or the profile is a new one."""
        found = api.profile(self._profile).get("status", {}).get("telemetry")
        return found if isinstance(found, dict) else None


def _same(desired: dict[str, Any], written: dict[str, Any] | None) -> bool:
    """Whether nothing changed that anybody acts on; a message is of any one node."""
    if written is None:
        return False
    return json.dumps(_compared(desired)) == json.dumps(_compared(written))


def _compared(field: dict[str, Any]) -> list[Any]:
    rows = field.get("degraded") or []
    counts = [(row.get("reason"), row.get("nodes")) for row in rows]
    keys = ("streamReachable", "nodesReporting", "nodesLearning", "silentNodes")
    return [*(field.get(key) for key in keys), counts]
