"""The node condition ``RevealAnomaly``, present while something High or Critical is open there.

Opt-in.  It has no heartbeat: it is written when it changes and removed when all is resolved, so
that schedulers and remediation controllers see only nodes that have it.  A strategic merge patch
leaves the kubelet's conditions alone (Node API: conditions merge by type).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from reveal_analyzer.sinks.kube.api import Object, SinkApi
from reveal_contract.finding import rfc3339
from reveal_contract.kube.anomaly_report import Report
from reveal_contract.kube.errors import ApiError, UnavailableError
from reveal_contract.kube.names import clipped

log = logging.getLogger(__name__)

TYPE = "RevealAnomaly"
_MESSAGE_BYTES = 512


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
        return {"type": TYPE, "$patch": "delete"}
    moment = f"{rfc3339(now_ns)[:19]}Z"  # metav1.Time: whole seconds
    return {
        "type": TYPE,
        "status": "True",
        "reason": text.reason,
        "message": text.message,
        "lastHeartbeatTime": moment,
        "lastTransitionTime": moment,
    }


class NodeConditions:
    """Keeps the conditions of the nodes equal to the reports."""

    def __init__(self, api: SinkApi) -> None:
        self._api = api
        self._written: dict[str, ConditionText] = {}
        self._refusal_logged = False

    def assume(self, nodes: Sequence[str]) -> None:
        """Note that an earlier run may have left a condition on these nodes."""
        for node in nodes:
            self._written.setdefault(node, ConditionText("", ""))

    def update(self, urgent: Mapping[str, Sequence[Report]], now_ns: int) -> None:
        """Write what changed; an ``UnavailableError`` leaves the rest for the next call."""
        desired = {node: condition_text(reports) for node, reports in urgent.items()}
        for node in sorted({*desired, *self._written}):
            text, written = desired.get(node), self._written.get(node)
            # Another message with the same reason is no change: many clients watch nodes.
            if text is not None and written is not None and text.reason == written.reason:
                continue
            self._write(node, text, now_ns)
            if text is None:
                del self._written[node]
            else:
                self._written[node] = text

    def _write(self, node: str, text: ConditionText | None, now_ns: int) -> None:
        try:
            self._api.patch_node_conditions(node, [condition(text, now_ns)])
        except UnavailableError:
            raise
        except ApiError as error:
            level = logging.DEBUG if self._refusal_logged else logging.WARNING
            self._refusal_logged = True
            log.log(level, "the condition of node %s cannot be written: %s", node, error)
