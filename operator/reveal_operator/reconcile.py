"""One visit of one profile: observe, build the plan, apply it, write the status.

Level-triggered: a visit looks at the state, never at what happened.  So it may be repeated, missed
or late without harm.  A visit that finds everything in order sends no request.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Protocol

from reveal_contract.kube.errors import ApiError
from reveal_contract.kube.events import COLLECTOR_DEGRADED, COLLECTOR_RECOVERED, PROFILE_REJECTED
from reveal_contract.kube.names import ANALYZER, COLLECTOR
from reveal_operator.conditions import (
    COLLECTORS_AVAILABLE,
    FALSE,
    NODES_REPORTING,
    READY,
    SPEC_ACCEPTED,
    TRUE,
    Condition,
    ConditionInputs,
    find,
    is_failing,
)
from reveal_operator.inspection import WorkloadInspector
from reveal_operator.metrics import OperatorMetrics
from reveal_operator.observed import ObservedObject, ObservedProfile, own_by_kind
from reveal_operator.owned_objects import OwnedObjects, SyncResult
from reveal_operator.placement import Placement
from reveal_operator.plan import PlanCache, ProfilePlan, with_hypotheses
from reveal_operator.profile_events import EventSender
from reveal_operator.profile_status import StatusWriter, status_of
from reveal_operator.recurrence import Recurrence, recurrences
from reveal_operator.report_records import ReportIndex
from reveal_operator.retention import RetentionLimits
from reveal_operator.rollout import RolloutOrder, without_collectors
from reveal_operator.shared_nodes import SharedNodes
from reveal_operator.silence import SilenceTracker
from reveal_operator.silent_nodes import SilentNodeFinder

OTHER_PROFILES_S = 1.0  # until the profiles are visited whose nodes a change may concern

_log = logging.getLogger(__name__)


class View(Protocol):
    """The state of the cluster, from watches."""

    def profile(self, name: str) -> ObservedProfile | None:
        """Return the profile of that name."""

    def profiles(self) -> Iterable[ObservedProfile]:
        """Return all profiles."""

    def owned(self, profile: str) -> list[ObservedObject]:
        """Return the objects of a profile."""

    def content(self, config: str) -> str:
        """Return a hash of what a ConfigMap holds; "" where there is none."""


class Reconciler:
    """Visits profiles, each by one task at a time; ``revisit`` queues one for later."""

    def __init__(  # noqa: PLR0913 - its parts
        self,
        *,
        view: View,
        plans: PlanCache,
        objects: OwnedObjects,
        rollout: RolloutOrder,
        statuses: StatusWriter,
        inspector: WorkloadInspector,
        shared_nodes: SharedNodes,
        silence: SilenceTracker,
        silent_nodes: SilentNodeFinder,
        reports: ReportIndex,
        events: EventSender,
        metrics: OperatorMetrics,
        revisit: Callable[[str, float], None],
        now: Callable[[], float] = time.time,
    ) -> None:
        self._view, self._plans, self._objects = view, plans, objects
        self._rollout = rollout
        self._statuses, self._inspector, self._shared_nodes = statuses, inspector, shared_nodes
        self._silence, self._silent_nodes, self._reports = silence, silent_nodes, reports
        self._events, self._metrics = events, metrics
        self._revisit, self._now = revisit, now
        self._placements: dict[str, Placement] = {}

    async def __call__(self, name: str) -> float | None:
        """Visit a profile; return after how many seconds to visit it again, if at all.

        Raises where the visit must be repeated.
        """
        profile = self._view.profile(name)
        if profile is None or profile.deleting:
            self._forget(name)
            return None
        with self._metrics.visit():
            try:
                again = await self._visit(profile)
            except ApiError as error:
                self._metrics.visited("retried")
                _log.warning("will retry: %s", error, extra={"object": profile.reference})
                raise
            except Exception:
                self._metrics.visited("failed")
                _log.exception("visit of %s failed", name, extra={"object": profile.reference})
                raise
        self._metrics.visited("done")
        return again

    def limits(self) -> dict[str, RetentionLimits]:
        """Return the limits of reports by profile; those of a rejected one are not deleted."""
        parsed = {each.name: self._plans.of(each).profile for each in self._view.profiles()}
        return {
            name: RetentionLimits(
                profile.reporting.ttl_seconds_after_resolved, profile.reporting.max_reports
            )
            for name, profile in parsed.items()
            if profile is not None
        }

    async def _visit(self, profile: ObservedProfile) -> float | None:
        plan = self._plans.of(profile)
        observed = self._view.owned(profile.name)
        result = SyncResult()
        # A rejected spec or a paused profile leaves the objects as they are.
        if plan.profile is not None and not plan.profile.paused:
            desired = with_hypotheses(plan.manifests, self._view.content(plan.hypotheses))
            waiting_s = self._rollout.waiting_s(profile, desired, observed)
            applied = without_collectors(desired) if waiting_s else desired
            result = await self._objects.sync(profile, desired, observed, applied)
            if waiting_s:
                result.visit_again(waiting_s)
        previous = self._statuses.current(profile)
        inputs, again = await self._inputs(profile, plan, observed, result)
        known = previous.get("conditions") or ()
        settling = self._silence.update(
            profile.name, inputs.silent_nodes, find(known, NODES_REPORTING)["status"]
        )
        inputs = replace(inputs, settling=settling.status, recurring=self._recurring(profile.name))
        inputs = await self._with_silent_nodes(profile, inputs)
        self._count_nodes(profile.name, inputs)
        moment = datetime.fromtimestamp(self._now(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        status = status_of(inputs, self._reports.counts(profile.name), previous, moment)
        await self._statuses.write(profile, status)
        self._publish_changes(profile, previous.get("conditions") or [], status["conditions"])
        # Raised only now: the status and Events of a visit that partly failed are written too.
        if result.failed is not None:
            raise result.failed
        return min((pause for pause in (again, settling.again) if pause), default=None)

    def _recurring(self, name: str) -> tuple[Recurrence, ...] | None:
        listed = self._reports.listed.is_set()
        return recurrences(self._reports.of(name)) if listed else None

    async def _with_silent_nodes(
        self, profile: ObservedProfile, inputs: ConditionInputs
    ) -> ConditionInputs:
        """Add the names of nodes that have been silent for longer than a moment."""
        silent = 0 if inputs.settling else inputs.silent_nodes
        stopped = inputs.trusted_telemetry.get("silentNodes") or ()
        names = await self._silent_nodes.find(profile.name, silent, stopped)
        return replace(inputs, silent=names)

    def _count_nodes(self, name: str, inputs: ConditionInputs) -> None:
        desired = inputs.collectors.desired if inputs.collectors else None
        self._metrics.nodes(name, desired, inputs.trusted_telemetry.get("nodesReporting"))

    async def _inputs(
        self,
        profile: ObservedProfile,
        plan: ProfilePlan,
        observed: list[ObservedObject],
        result: SyncResult,
    ) -> tuple[ConditionInputs, float | None]:
        """Return what the conditions depend on, and after how many seconds it may change."""
        # Objects of an earlier profile of this name do not count: they are about to be deleted.
        owned = own_by_kind(profile, observed)
        collectors, analyzer = owned.get("DaemonSet"), owned.get("Deployment")
        of_collectors = await self._inspector.inspect(profile.name, COLLECTOR, collectors)
        of_analyzer = await self._inspector.inspect(profile.name, ANALYZER, analyzer)
        placements = self._update_placements(profile, plan)
        overlaps, nodes_again = await self._shared_nodes.overlaps(
            profile.name, placements, self._desired_nodes(placements)
        )
        inputs = ConditionInputs(
            generation=profile.generation,
            paused=plan.profile.paused if plan.profile else bool(profile.spec.get("paused")),
            rejected=plan.rejected,
            refused=result.refused,
            collectors=collectors.workload if collectors else None,
            collectors_failure=of_collectors.failure,
            analyzer=analyzer.workload if analyzer else None,
            analyzer_failure=of_analyzer.failure,
            telemetry=profile.status.get("telemetry"),
            overlaps=overlaps,
        )
        pauses = [result.again, of_collectors.again, of_analyzer.again, nodes_again]
        return inputs, min((pause for pause in pauses if pause), default=None)

    def _update_placements(
        self, profile: ObservedProfile, plan: ProfilePlan
    ) -> Mapping[str, Placement]:
        """Return the placement of every profile; queue the others if this one's changed."""
        current = {
            each.name: placement
            for each in self._view.profiles()
            if not each.deleting and (placement := self._plans.of(each).placement) is not None
        }
        previous, self._placements = self._placements, current
        # At the first visit after a start all profiles are queued anyway.
        if previous and previous.get(profile.name) is not plan.placement:
            self._revisit_others(profile.name)
        return current

    def _desired_nodes(self, names: Iterable[str]) -> dict[str, int]:
        """Return how many nodes each DaemonSet wants to run on."""
        return {
            name: each.workload.desired
            for name in names
            for each in self._view.owned(name)
            if each.kind == "DaemonSet" and each.workload
        }

    def _revisit_others(self, name: str) -> None:
        for other in self._placements:
            if other != name:
                self._revisit(other, OTHER_PROFILES_S)

    def _publish_changes(
        self, profile: ObservedProfile, previous: list[Condition], current: list[Condition]
    ) -> None:
        """Write Events, one for each change of a condition that somebody should know."""
        self._log_ready(profile, find(previous, READY), find(current, READY))
        accepted, was_accepted = find(current, SPEC_ACCEPTED), find(previous, SPEC_ACCEPTED)
        reported = was_accepted["status"], was_accepted.get("observedGeneration")
        # Each generation that is rejected has an Event of its own: its author is waiting for it.
        if accepted["status"] == FALSE and reported != (FALSE, profile.generation):
            self._events.publish(PROFILE_REJECTED, profile, accepted["message"])
            _log.warning("rejected: %s", accepted["message"], extra={"object": profile.reference})
        was, now = find(previous, COLLECTORS_AVAILABLE), find(current, COLLECTORS_AVAILABLE)
        if is_failing(now) and not is_failing(was):
            self._events.publish(COLLECTOR_DEGRADED, profile, now["message"])
        # From failing to starting or paused is no recovery yet.
        elif is_failing(was) and now["status"] == TRUE:
            self._events.publish(COLLECTOR_RECOVERED, profile, now["message"])

    def _log_ready(self, profile: ObservedProfile, was: Condition, now: Condition) -> None:
        if was["status"] != now["status"]:
            parts = (now["status"], now["reason"], now["message"])
            _log.info("Ready: %s, %s: %s", *parts, extra={"object": profile.reference})

    def _forget(self, name: str) -> None:
        """Forget a profile that is gone; the garbage collector deletes its objects."""
        memories = (
            self._objects, self._rollout, self._statuses, self._inspector, self._shared_nodes,
            self._silence, self._silent_nodes,
        )  # fmt: skip
        for memory in memories:
            memory.forget(name)
        self._metrics.nodes(name, None, None)
        if self._plans.forget(name):
            self._placements = {
                other: placement for other, placement in self._placements.items() if other != name
            }
            self._revisit_others(name)
