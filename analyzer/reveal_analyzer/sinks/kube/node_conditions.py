"""The node condition ``RevealAnomaly``, present while something High or Critical is open there.

Opt-in.  It has no heartbeat: it is written when it changes and removed when all is resolved, so
that schedulers and remediation controllers see only nodes that have it.  A strategic merge patch
leaves the kubelet's conditions alone (Node API: conditions merge by type).

Several analyzers may have reports of one node: during a takeover, or the leader with its comparison
of nodes.  So no analyzer decides by the reports that it knows.  Those only say *when* to look: then
the open reports of the node are read from the API, and whoever looks writes the same condition.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from reveal_analyzer.formatting import list_some
from reveal_analyzer.sinks.kube.api import Object, SinkApi
from reveal_analyzer.sinks.kube.condition_limit import ConditionLimit
from reveal_analyzer.telemetry.degraded import Degradation
from reveal_contract.finding import rfc3339
from reveal_contract.kube.anomaly_report import Report
from reveal_contract.kube.errors import ApiError, NotFoundError, UnavailableError
from reveal_contract.kube.names import clipped
from reveal_contract.kube.node_condition import (
    CONDITION_TYPE,
    REMOVAL,
    is_urgent,
    reason_of,
    wants_conditions,
)
from reveal_contract.kube.report_parser import parse_report
from reveal_contract.kube.silence import is_silenced

log = logging.getLogger(__name__)

REASON = "NodeConditionsLimited"
MOST_PERCENT = 20  # of the nodes of a profile, unless the profile says otherwise
_MESSAGE_BYTES = 512
_MOST_NAMED = 3  # names in a message
_UNCHECKED = frozenset({""})  # no set of reports: a node with it is looked at next


class ConditionText(NamedTuple):
    """What the condition of one node says."""

    reason: str
    message: str


def condition_text(reports: Sequence[Report]) -> ConditionText:
    """Return the text for these open reports of a node: the worst one, and how many more."""
    worst = max(reports, key=lambda report: report.severity.rank)
    more = f" (and {len(reports) - 1} more)" if len(reports) > 1 else ""
    message = clipped(f"{worst.name}: {worst.finding.claim}{more}", _MESSAGE_BYTES)
    return ConditionText(f"{worst.finding.subsystem}{worst.severity}", message)


def condition(text: ConditionText | None, now_ns: int) -> Object:
    """Return one entry of the list to merge; None removes the condition."""
    if text is None:
        return {**REMOVAL}
    moment = f"{rfc3339(now_ns)[:19]}Z"  # metav1.Time: whole seconds
    return {
        "type": CONDITION_TYPE,
        "status": "True",
        "reason": text.reason,
        "message": text.message,
        "lastHeartbeatTime": moment,
        "lastTransitionTime": moment,
    }


class NodeConditions:
    """Keeps the conditions of nodes equal to the reports that the API has.

    Without ``enabled`` this analyzer puts none on a node, and removes what an earlier run left.  It
    leaves what the profile now asks for: during a roll-out an analyzer with newer settings sets it.
    """

    def __init__(
        self, api: SinkApi, profile: str, *, enabled: bool, most_percent: int = MOST_PERCENT
    ) -> None:
        self._api, self._profile, self.enabled = api, profile, enabled
        self._limit = ConditionLimit(api, profile, most_percent)
        # by node, the urgent reports of this analyzer when the node was looked at last
        self._checked: dict[str, frozenset[str]] = {}
        self._refusal_logged = False

    def nodes_of(self, reports: Iterable[Report]) -> set[str]:
        """Return the nodes of open reports that may have a condition.

        A report that is milder by now may have left one.  That is not looked for where conditions
        are off: it would cost every analyzer a request for each open report.
        """
        return {each.node for each in reports if each.anomaly and (self.enabled or is_urgent(each))}

    def recheck(self, nodes: Iterable[str]) -> None:
        """Look at these nodes again: their reports are open, or an earlier run left something."""
        self._checked |= dict.fromkeys(nodes, _UNCHECKED)

    def update(self, urgent: Mapping[str, frozenset[str]], now_ns: int) -> None:
        """Look at each node whose urgent reports changed; raises ``UnavailableError``.

        After that error the rest is done by the next call.
        """
        urgent = urgent if self.enabled else {}
        self._limit.begin_round()
        for node in sorted({*urgent, *self._checked}):
            reports = urgent.get(node, frozenset())
            is_new = self._checked.get(node, frozenset()) != reports
            if is_new or self._limit.is_due(node, now_ns):
                self._check(node, now_ns)
            if reports:
                self._checked[node] = reports
            else:
                self._checked.pop(node, None)
                self._limit.release(node)

    def degradations(self) -> list[Degradation]:
        """Return which nodes do not have the condition as too many others have it."""
        if not (limited := sorted(self._limit.limited)):
            return []
        text = (
            f"{list_some(limited, most=_MOST_NAMED)} have urgent reports but not the condition"
            f" {CONDITION_TYPE}: as many other nodes have it as"
            " reporting.maxNodeConditionsPercent permits"
        )
        return [Degradation(REASON, len(limited), clipped(text, _MESSAGE_BYTES))]

    def _check(self, node: str, now_ns: int) -> None:
        """Make the condition of one node right; a refusal is logged, and tried at the next list."""
        try:
            present = reason_of(self._api.node(node))
            if present is None and not self.enabled:
                return
            desired = self._desired(node, now_ns)
            if desired and not self.enabled:
                return
            if desired and present is None and not self._limit.permits(node, now_ns):
                log.warning("node %s does not get the condition: too many others have it", node)
                return
            if (desired and desired.reason) != present:
                self._api.patch_node_conditions(node, [condition(desired, now_ns)])
        except UnavailableError:
            raise
        except NotFoundError as error:
            log.debug("node %s has no condition: %s", node, error)
        except ApiError as error:
            level = logging.DEBUG if self._refusal_logged else logging.WARNING
            self._refusal_logged = True
            log.log(level, "the condition of node %s cannot be written: %s", node, error)

    def _desired(self, node: str, now_ns: int) -> ConditionText | None:
        """Return what the condition should say, by all open reports that nobody silenced."""
        listed = self._api.open_reports_on(node)
        found = [parse_report(each) for each in listed if not is_silenced(each, now_ns)]
        reports = [each for each in found if each and each.node == node and is_urgent(each)]
        profiles = {report.identity.profile for report in reports}
        counting = {profile for profile in profiles if self._counts(profile)}
        urgent = [report for report in reports if report.identity.profile in counting]
        return condition_text(urgent) if urgent else None

    def _counts(self, profile: str) -> bool:
        """Whether the reports of a profile put conditions on nodes."""
        if profile == self._profile and self.enabled:
            return True
        try:
            return wants_conditions(self._api.profile(profile).get("spec") or {})
        except NotFoundError:
            return False
