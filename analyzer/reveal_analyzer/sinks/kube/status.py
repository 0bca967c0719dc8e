"""``status.telemetry`` of the profile: written when it changed, each 30 seconds at most."""

from __future__ import annotations

import json
import logging
from typing import Any

import redis

from reveal_analyzer.sinks.kube.api import SinkApi
from reveal_analyzer.stream.connection import OUTAGE
from reveal_analyzer.telemetry.snapshot import Situation
from reveal_analyzer.telemetry.states import State, States, state_of

log = logging.getLogger(__name__)

TELL_SECONDS = 10.0  # between two of our own states
LOOK_SECONDS = 30.0  # between two looks at what collectors say
WRITE_SECONDS = 30.0
CHECK_SECONDS = 300.0  # between two looks at what the API has
UNREACHABLE_SECONDS = 60.0  # of Redis, until one that never led says so


def telemetry(state: State | None) -> dict[str, Any]:
    """The object's form; None while the stream cannot be read."""
    known = state or State()
    return {
        "streamReachable": state is not None,
        "nodesReporting": known.reporting,
        "nodesLearning": known.learning,
        "degraded": [
            {"reason": one.reason, "nodes": one.nodes, "message": one.message}
            for one in known.degraded
        ],
    }


class ProfileStatus:
    """One thread.  ``step`` raises ``ApiError``; an outage of Redis it tells of.

    Only the analyzer that leads writes; while Redis is away nobody does, and then the one that
    led last, or one that has never reached it, says that it is away.
    """

    def __init__(self, client: redis.Redis, profile: str, owner: str) -> None:
        self._states = States(client, profile, owner)
        self._profile = profile
        self._tell_s = self._look_s = self._write_s = self._check_s = 0.0
        self._degraded: Any = ()
        self._written: dict[str, Any] | None = None
        self._led = self._reached = False
        self._began_s: float | None = None

    def step(self, api: SinkApi, situation: Situation) -> None:
        wanted = self._wanted(situation)
        now = situation.at_s
        if wanted is None or now < self._write_s:
            return
        if now >= self._check_s:
            self._written = self._present(api)
            self._check_s = now + CHECK_SECONDS
        if _same(wanted, self._written):
            return
        self._write_s = now + WRITE_SECONDS
        api.apply_profile_status(self._profile, {"telemetry": wanted})
        self._written = wanted

    def close(self) -> None:
        try:
            self._states.drop()
        except OUTAGE as error:
            log.debug("our state runs out by itself: %s", error)

    def _wanted(self, situation: Situation) -> dict[str, Any] | None:
        """What the profile should say; None where that is not ours to say."""
        if self._began_s is None:
            self._began_s = situation.at_s
        if not situation.connected:
            waited = situation.at_s - self._began_s
            alone = not self._reached and waited >= UNREACHABLE_SECONDS
            return telemetry(None) if self._led or alone else None
        self._reached = True
        try:
            self._tell(situation)
            self._led = situation.leads
            return telemetry(self._states.get()) if situation.leads else None
        except OUTAGE as error:  # whoever reads the slices says so
            log.debug("the states of the analyzers are not known: %s", error)
            return None

    def _tell(self, situation: Situation) -> None:
        now = situation.at_s
        if now >= self._look_s:
            self._look_s = now + LOOK_SECONDS
            self._degraded = self._states.degraded(situation.nodes)
        if now >= self._tell_s:
            self._tell_s = now + TELL_SECONDS
            self._states.put(state_of(situation, self._degraded))

    def _present(self, api: SinkApi) -> dict[str, Any] | None:
        """What the API has; others may have written, or the profile was made anew."""
        found = api.profile(self._profile).get("status", {}).get("telemetry")
        return found if isinstance(found, dict) else None


def _same(wanted: dict[str, Any], written: dict[str, Any] | None) -> bool:
    """Whether nothing changed that anybody would act on: messages are of any one node."""
    if written is None:
        return False
    return json.dumps(_counted(wanted)) == json.dumps(_counted(written))


def _counted(told: dict[str, Any]) -> list[Any]:
    rows = told.get("degraded") or []
    counts = [(row.get("reason"), row.get("nodes")) for row in rows]
    return [told.get(key) for key in ("streamReachable", "nodesReporting", "nodesLearning")] + [
        counts
    ]
