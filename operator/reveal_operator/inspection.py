"""Inspects the pods of a workload while some are missing or old: rarely, and only then.

DaemonSets and Deployments say how many pods are missing, not why.  Their pods are not watched (a
profile may have thousands): they are listed after half a minute, and then once a minute.  A pod
that cannot start stops a roll-out, while those of the older template are all available.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from reveal_contract.kube.errors import ApiError
from reveal_contract.kube.names import LABEL_COMPONENT, LABEL_PROFILE, label_value
from reveal_operator.api import OperatorApi
from reveal_operator.observed import ObservedObject
from reveal_operator.pod_failures import Failure, explain

PATIENCE_S = 30.0  # a pod may take so long to start; a longer time needs an explanation
INTERVAL_S = 60.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class InspectionResult:
    """``failure`` is None where nothing is missing, or not for long; ``again`` is in seconds."""

    failure: Failure | None = None
    again: float | None = None


@dataclass
class _Inspection:
    """A workload in which pods are missing or old since ``since``."""

    since: float
    inspected: float = 0.0
    failure: Failure | None = None


class WorkloadInspector:
    """Remembers which workloads have missing pods, and since when."""

    def __init__(
        self, api: OperatorApi, namespace: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._api, self._namespace, self._clock = api, namespace, clock
        self._open: dict[tuple[str, str], _Inspection] = {}
        self._known: set[tuple[str, str]] = set()

    def forget(self, profile: str) -> None:
        """Forget the workloads of a profile that is gone."""
        self._known = {key for key in self._known if key[0] != profile}
        for key in [key for key in self._open if key[0] == profile]:
            del self._open[key]

    async def inspect(
        self, profile: str, component: str, owned: ObservedObject | None
    ) -> InspectionResult:
        """Return why pods of a workload are missing.

        A workload that is new to this process is inspected at once: it existed before the operator
        started, and its status may already have the failure.  A workload of a new profile does not
        exist yet at the first visit.
        """
        key, now = (profile, component), self._clock()
        workload, first = owned.workload if owned else None, key not in self._known
        self._known.add(key)
        if owned is None or workload is None or workload.is_complete:
            self._open.pop(key, None)
            return InspectionResult()
        since = now - PATIENCE_S if first else now
        inspection = self._open.setdefault(key, _Inspection(since))
        wait = inspection.since + PATIENCE_S - now
        if wait > 0:
            return InspectionResult(None, wait)
        if inspection.failure is None or now - inspection.inspected >= INTERVAL_S:
            inspection.inspected = now
            inspection.failure = await self._failure_of(profile, component, owned)
        return InspectionResult(inspection.failure, INTERVAL_S)

    async def _failure_of(self, profile: str, component: str, owned: ObservedObject) -> Failure:
        workload = owned.workload
        if workload and workload.failing_conditions:
            reason, message = workload.failing_conditions[0]
            return Failure(reason or "Unavailable", message)
        try:
            found = await asyncio.to_thread(self._explain, profile, component)
        except ApiError as error:
            _log.warning("pods cannot be listed: %s", error)
            return Failure("Unavailable", f"their pods cannot be listed: {error.message}")
        if found is not None:
            return found
        command = f"kubectl -n {self._namespace} describe {owned.kind.lower()} {owned.name}"
        if workload and workload.created < workload.desired:
            message = (
                f"their pods cannot be created; `{command}` shows why (often Pod Security: the"
                " namespace must allow privileged pods)"
            )
            return Failure("PodsNotCreated", message)
        return Failure("Unavailable", f"`{command}` shows more")

    def _explain(self, profile: str, component: str) -> Failure | None:
        labels = f"{LABEL_PROFILE}={label_value(profile)},{LABEL_COMPONENT}={component}"
        pages = self._api.pages("Pod", self._namespace, labels)
        return explain(pod for page in pages for pod in page.items)
