"""One visit of one profile: observe, build, apply, say how it is.

Level-triggered: a visit looks at what is, never at what happened, so it may be repeated, missed or
late without harm.  What it finds to be in order costs no request.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Protocol

from reveal_contract.kube.errors import ApiError
from reveal_contract.kube.events import COLLECTOR_DEGRADED, COLLECTOR_RECOVERED, PROFILE_REJECTED
from reveal_contract.kube.names import ANALYZER, COLLECTOR
from reveal_operator.children import Children, Outcome
from reveal_operator.conditions import (
    COLLECTORS_AVAILABLE,
    FALSE,
    READY,
    SPEC_ACCEPTED,
    TRUE,
    Condition,
    Facts,
    find,
    is_failing,
)
from reveal_operator.events import Recorder
from reveal_operator.inspection import Inspection
from reveal_operator.metrics import Metrics
from reveal_operator.neighbours import Neighbours
from reveal_operator.overlap import Placement
from reveal_operator.plan import Plan, Plans, reading
from reveal_operator.reports import Reports
from reveal_operator.retention import Limits
from reveal_operator.seen import ChildSeen, ProfileSeen
from reveal_operator.status import Statuses, status_of

NEIGHBOURS_S = 1.0  # until those whose nodes a change may touch are visited

_log = logging.getLogger(__name__)


class View(Protocol):
    """What is known of the cluster, from watches."""

    def profile(self, name: str) -> ProfileSeen | None:
        """The profile of that name."""

    def profiles(self) -> Iterable[ProfileSeen]:
        """All of them."""

    def children(self, profile: str) -> list[ChildSeen]:
        """What belongs to a profile."""

    def content(self, config: str) -> str:
        """A hash of what a ConfigMap holds; "" where there is none."""


class Reconciler:
    """Visits profiles, each by one task at a time; ``revisit`` queues one for later."""

    def __init__(  # noqa: PLR0913 - what it is made of
        self,
        *,
        view: View,
        plans: Plans,
        children: Children,
        statuses: Statuses,
        inspection: Inspection,
        neighbours: Neighbours,
        reports: Reports,
        recorder: Recorder,
        metrics: Metrics,
        revisit: Callable[[str, float], None],
        now: Callable[[], float] = time.time,
    ) -> None:
        self._view, self._plans, self._children = view, plans, children
        self._statuses, self._inspection, self._neighbours = statuses, inspection, neighbours
        self._reports, self._recorder, self._metrics = reports, recorder, metrics
        self._revisit, self._now = revisit, now
        self._placements: dict[str, Placement] = {}

    async def __call__(self, name: str) -> float | None:
        """Seconds after which to look again, if any.  Raises where it must be retried."""
        profile = self._view.profile(name)
        if profile is None or profile.deleting:
            self._forget(name)
            return None
        with self._metrics.visit():
            try:
                again = await self._visit(profile)
            except ApiError as error:
                self._metrics.visited("retried")
                _log.warning("tried again: %s", error, extra={"object": profile.reference})
                raise
            except Exception:
                self._metrics.visited("failed")
                _log.exception("visit of %s failed", name, extra={"object": profile.reference})
                raise
        self._metrics.visited("done")
        return again

    def limits(self) -> dict[str, Limits]:
        """What may be kept of reports, by profile; of a rejected one nothing is touched."""
        known = {seen.name: self._plans.of(seen).profile for seen in self._view.profiles()}
        return {
            name: Limits(
                profile.reporting.ttl_seconds_after_resolved, profile.reporting.max_reports
            )
            for name, profile in known.items()
            if profile is not None
        }

    async def _visit(self, profile: ProfileSeen) -> float | None:
        plan = self._plans.of(profile)
        seen = self._view.children(profile.name)
        outcome = Outcome()
        if plan.profile is not None and not plan.profile.paused:
            wanted = reading(plan.children, self._view.content(plan.hypotheses))
            outcome = await self._children.sync(profile, wanted, seen)
        before = self._statuses.current(profile)
        facts, again = await self._facts(profile, plan, seen, outcome)
        moment = datetime.fromtimestamp(self._now(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        status = status_of(facts, self._reports.tally(profile.name), before, moment)
        await self._statuses.write(profile, status)
        self._tell(profile, before.get("conditions") or [], status["conditions"])
        if outcome.failed is not None:
            raise outcome.failed
        return again

    async def _facts(
        self, profile: ProfileSeen, plan: Plan, seen: list[ChildSeen], outcome: Outcome
    ) -> tuple[Facts, float | None]:
        """What the conditions follow from, and after how many seconds that may be another."""
        parts = {child.kind: child for child in seen if child.owner_uid == profile.uid}
        collectors, analyzer = parts.get("DaemonSet"), parts.get("Deployment")
        first = await self._inspection.of(profile.name, COLLECTOR, collectors)
        second = await self._inspection.of(profile.name, ANALYZER, analyzer)
        placements = self._all_placements(profile, plan)
        overlaps, third = await self._neighbours.overlaps(
            profile.name, placements, self._wanted(placements)
        )
        facts = Facts(
            generation=profile.generation,
            paused=plan.profile.paused if plan.profile else bool(profile.spec.get("paused")),
            rejected=plan.rejected,
            refused=outcome.refused,
            collectors=collectors.workload if collectors else None,
            collectors_trouble=first.trouble,
            analyzer=analyzer.workload if analyzer else None,
            analyzer_trouble=second.trouble,
            telemetry=profile.status.get("telemetry"),
            overlaps=overlaps,
        )
        pauses = [pause for pause in (outcome.again, first.again, second.again, third) if pause]
        return facts, min(pauses, default=None)

    def _all_placements(self, profile: ProfileSeen, plan: Plan) -> Mapping[str, Placement]:
        """Where each profile wants to be; those that this one's change may touch are queued."""
        now = {
            seen.name: placement
            for seen in self._view.profiles()
            if not seen.deleting and (placement := self._plans.of(seen).placement) is not None
        }
        before, self._placements = self._placements, now
        if before and before.get(profile.name) is not plan.placement:
            self._revisit_others(profile.name)
        return now

    def _wanted(self, names: Iterable[str]) -> dict[str, int]:
        """How many nodes each DaemonSet wants."""
        return {
            name: child.workload.desired
            for name in names
            for child in self._view.children(name)
            if child.kind == "DaemonSet" and child.workload
        }

    def _revisit_others(self, name: str) -> None:
        for other in self._placements:
            if other != name:
                self._revisit(other, NEIGHBOURS_S)

    def _tell(self, profile: ProfileSeen, before: list[Condition], after: list[Condition]) -> None:
        """Events, one a change."""
        self._log_ready(profile, find(before, READY), find(after, READY))
        spec, spec_before = find(after, SPEC_ACCEPTED), find(before, SPEC_ACCEPTED)
        told = spec_before["status"], spec_before.get("observedGeneration")
        if spec["status"] == FALSE and told != (FALSE, profile.generation):
            self._recorder.tell(PROFILE_REJECTED, profile, spec["message"])
            _log.warning("rejected: %s", spec["message"], extra={"object": profile.reference})
        was, is_now = find(before, COLLECTORS_AVAILABLE), find(after, COLLECTORS_AVAILABLE)
        if is_failing(is_now) and not is_failing(was):
            self._recorder.tell(COLLECTOR_DEGRADED, profile, is_now["message"])
        elif is_failing(was) and is_now["status"] == TRUE:
            self._recorder.tell(COLLECTOR_RECOVERED, profile, is_now["message"])

    def _log_ready(self, profile: ProfileSeen, was: Condition, is_now: Condition) -> None:
        if was["status"] != is_now["status"]:
            said = (is_now["status"], is_now["reason"], is_now["message"])
            _log.info("Ready: %s, %s: %s", *said, extra={"object": profile.reference})

    def _forget(self, name: str) -> None:
        """The profile is gone: its children are the garbage collector's."""
        for memory in (self._children, self._statuses, self._inspection, self._neighbours):
            memory.forget(name)
        if self._plans.forget(name):
            self._placements = {
                other: placement for other, placement in self._placements.items() if other != name
            }
            self._revisit_others(name)
