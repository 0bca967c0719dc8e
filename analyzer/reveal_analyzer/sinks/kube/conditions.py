"""The condition ``RevealAnomaly`` of nodes: there while something High or Critical is open.

Opt-in.  No heartbeat: it is written when it changes and taken away when all is resolved, so
that schedulers and remediation see only nodes that have it.  Written by a strategic merge, which
leaves the kubelet's conditions alone (Node API: conditions merge by type).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from reveal_analyzer.sinks.kube.api import Object, SinkApi
from reveal_contract.finding import rfc3339
from reveal_contract.kube.anomaly_report import Report
from reveal_contract.kube.errors import ApiError, UnavailableError
from reveal_contract.kube.names import clipped

log = logging.getLogger(__name__)

TYPE = "RevealAnomaly"
_MESSAGE_BYTES = 512

Shown = tuple[str, str]  # reason and message


def shown(reports: Sequence[Report]) -> Shown:
    """What the condition says of these open reports; the worst first."""
    worst = max(reports, key=lambda one: one.severity.rank)
    more = f" (and {len(reports) - 1} more)" if len(reports) > 1 else ""
    subsystem, severity = worst.finding.subsystem, worst.severity
    claim = worst.finding.claim
    return f"{subsystem}{severity}", clipped(f"{worst.name}: {claim}{more}", _MESSAGE_BYTES)


def condition(said: Shown | None, now_ns: int) -> Object:
    """One entry of the list to merge; None takes the condition away."""
    if said is None:
        return {"type": TYPE, "$patch": "delete"}
    reason, message = said
    moment = f"{rfc3339(now_ns)[:19]}Z"  # metav1.Time: whole seconds
    return {
        "type": TYPE,
        "status": "True",
        "reason": reason,
        "message": message,
        "lastHeartbeatTime": moment,
        "lastTransitionTime": moment,
    }


class NodeConditions:
    """Keeps the nodes' conditions as the reports are."""

    def __init__(self, api: SinkApi) -> None:
        self._api = api
        self._shown: dict[str, Shown] = {}
        self._said_refused = False

    def found(self, nodes: Sequence[str]) -> None:
        """An earlier run may have left a condition on these."""
        for node in nodes:
            self._shown.setdefault(node, ("", ""))

    def follow(self, alarmed: Mapping[str, Sequence[Report]], now_ns: int) -> None:
        """Write what changed; an ``UnavailableError`` leaves the rest for the next call."""
        wanted = {node: shown(reports) for node, reports in alarmed.items()}
        for node in sorted({*wanted, *self._shown}):
            said, before = wanted.get(node), self._shown.get(node)
            # other words of the same kind are no change: a node's status is read by many
            if said is not None and before is not None and said[0] == before[0]:
                continue
            self._write(node, said, now_ns)
            if said is None:
                del self._shown[node]
            else:
                self._shown[node] = said

    def _write(self, node: str, said: Shown | None, now_ns: int) -> None:
        try:
            self._api.patch_node_conditions(node, [condition(said, now_ns)])
        except UnavailableError:
            raise
        except ApiError as error:
            level = logging.DEBUG if self._said_refused else logging.WARNING
            self._said_refused = True
            log.log(level, "the condition of %s cannot be written: %s", node, error)
