"""The conditions of a RevealProfile: pure, from what is known of it now.

Each check returns one ``metav1.Condition``.  ``Ready`` has the reason of the first check that
fails, else of the first one that is unknown.  Conventions: typical status properties in
https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reveal_contract.kube.names import clipped
from reveal_operator.observed import Workload
from reveal_operator.pod_failures import TRANSIENT, Failure
from reveal_operator.recurrence import Recurrence

Condition = dict[str, Any]

READY = "Ready"
SPEC_ACCEPTED = "SpecAccepted"
COLLECTORS_AVAILABLE = "CollectorsAvailable"
ANALYZER_AVAILABLE = "AnalyzerAvailable"
STREAM_REACHABLE = "StreamReachable"
NODES_REPORTING = "NodesReporting"
DEGRADED = "Degraded"
LEARNING = "Learning"
FINDINGS_RECUR = "FindingsRecur"

TRUE, FALSE, UNKNOWN = "True", "False", "Unknown"
MAX_MESSAGE = 2048  # bytes; the schema in crds/
NODES_OVERLAP = "NodesOverlap"
STARTING = "Starting"
NODES_SILENT = "NodesSilent"
# one node in so many may be missing: in a large cluster some nodes are always down
TOLERATED = 10
_MOST_NAMED = 5  # nodes in a message
# reasons of a profile that only needs time, or nodes: nobody has to act
_QUIET = frozenset((STARTING, "Pending", "Paused", "NoNodes", "NotCreated"))


@dataclass(frozen=True, slots=True)
class ProfileOverlap:
    """Another profile that selects nodes of this one."""

    profile: str
    nodes: int
    example: str


@dataclass(frozen=True, slots=True)
class SilentNodes:
    """Names of nodes that do not report, as far as they are known, sorted.

    ``with_collector`` are those of them whose collector is ready.
    """

    names: tuple[str, ...] = ()
    with_collector: tuple[str, ...] = ()


@dataclass(frozen=True)
class ConditionInputs:
    """All that the conditions depend on.

    ``rejected`` is an invalid spec, ``refused`` an object that the API server refused.
    ``collectors`` and ``analyzer`` are None where there is no such object; their failure is None
    where the pods were not inspected.  ``telemetry`` is the analyzer's part of the status.
    ``silent`` names nodes that do not report.
    ``settling`` is the status that ``NodesReporting`` keeps while nodes are silent only for a
    moment, "" once that lasts.  ``recurring`` are the causes that return on nodes, None before the
    reports are listed.
    """

    generation: int
    paused: bool = False
    rejected: Failure | None = None
    refused: Failure | None = None
    collectors: Workload | None = None
    collectors_failure: Failure | None = None
    analyzer: Workload | None = None
    analyzer_failure: Failure | None = None
    telemetry: Mapping[str, Any] | None = None
    settling: str = ""
    silent: SilentNodes = SilentNodes()
    overlaps: tuple[ProfileOverlap, ...] = ()
    recurring: tuple[Recurrence, ...] | None = None

    @property
    def trusted_telemetry(self) -> Mapping[str, Any]:
        """The telemetry, empty where no analyzer works that could have written it lately."""
        works = self.analyzer is not None and self.analyzer.available
        return (self.telemetry or {}) if works else {}

    @property
    def silent_nodes(self) -> int:
        """How many of the desired nodes do not report; 0 where that is not known."""
        telemetry = self.trusted_telemetry
        if self.collectors is None or "nodesReporting" not in telemetry:
            return 0
        return max(0, self.collectors.desired - int(telemetry["nodesReporting"]))


@dataclass(frozen=True, slots=True)
class ConditionCheck:
    """One condition, without its times."""

    type: str
    status: str
    reason: str
    message: str


def conditions(facts: ConditionInputs, before: Sequence[Condition], now: str) -> list[Condition]:
    """Return all conditions; those whose status stays keep their times from ``before``.

    ``now`` is RFC 3339 in whole seconds.
    """
    known = {condition["type"]: condition for condition in before}
    return [
        _dated(check, facts.generation, known.get(check.type), now) for check in evaluate(facts)
    ]


def evaluate(facts: ConditionInputs) -> list[ConditionCheck]:
    """Return all checks, Ready first."""
    trusted = facts.trusted_telemetry or None
    parts = [
        spec_accepted(facts),
        collectors_available(facts),
        analyzer_available(facts),
        stream_reachable(trusted),
        nodes_reporting(facts),
    ]
    others = [degraded(facts, trusted), learning(trusted), findings_recur(facts.recurring)]
    return [ready(facts, parts), *parts, *others]


def ready(facts: ConditionInputs, parts: Sequence[ConditionCheck]) -> ConditionCheck:
    """Return whether all that the profile asks for works."""
    spec, *others = parts
    applied = ConditionCheck("", FALSE if facts.refused else TRUE, *_pair(facts.refused))
    checks = [spec, applied, *others]
    for status in (FALSE, UNKNOWN):
        for check in checks:
            if check.status == status:
                return ConditionCheck(READY, status, check.reason, check.message)
    nodes = facts.trusted_telemetry.get("nodesReporting", 0)
    if facts.paused:
        message = "paused: it works as configured last, changes are not applied"
        return ConditionCheck(READY, TRUE, "Paused", message)
    return ConditionCheck(READY, TRUE, "Watching", f"{nodes} nodes are watched")


def spec_accepted(facts: ConditionInputs) -> ConditionCheck:
    """Return whether the spec is valid."""
    if facts.rejected is None:
        return ConditionCheck(SPEC_ACCEPTED, TRUE, "Accepted", "the spec is valid")
    return ConditionCheck(SPEC_ACCEPTED, FALSE, facts.rejected.reason, facts.rejected.message)


def collectors_available(facts: ConditionInputs) -> ConditionCheck:
    """Return whether at least nine of ten nodes have a collector."""
    workload, kind = facts.collectors, COLLECTORS_AVAILABLE
    if workload is None:
        return ConditionCheck(kind, *_absent(facts, "collectors"))
    if not workload.desired:
        if not workload.current:  # the DaemonSet controller has not counted the nodes yet
            return ConditionCheck(kind, UNKNOWN, "Pending", "the DaemonSet was just created")
        message = (
            "no node is selected: label nodes to match spec.nodeSelector or spec.nodeAffinity "
            "(default: nodes that GPU or Node Feature Discovery labels as having NVIDIA GPUs)"
        )
        return ConditionCheck(kind, FALSE, "NoNodes", message)
    message = f"{workload.available} of {workload.desired} collectors are available"
    missing, rolling = workload.desired - workload.available, workload.is_rolling
    # a roll-out restarts one pod at a time: of several nodes one is always missing then
    if missing > max(workload.desired // TOLERATED, rolling and workload.desired > 1):
        return ConditionCheck(kind, FALSE, *_with_failure(message, facts.collectors_failure))
    if rolling:
        message += f", {workload.updated} have the latest settings"
        return ConditionCheck(kind, TRUE, "RollingOut", message)
    return ConditionCheck(kind, TRUE, "MostAvailable" if missing else "Available", message)


def analyzer_available(facts: ConditionInputs) -> ConditionCheck:
    """Return whether at least one analyzer works: it takes over the nodes of the others."""
    workload, kind = facts.analyzer, ANALYZER_AVAILABLE
    if workload is None:
        return ConditionCheck(kind, *_absent(facts, "analyzer"))
    message = f"{workload.available} of {workload.desired} analyzers are available"
    if not workload.available:
        return ConditionCheck(kind, FALSE, *_with_failure(message, facts.analyzer_failure))
    if workload.is_rolling:
        return ConditionCheck(kind, TRUE, "RollingOut", message)
    missing = workload.available < workload.desired
    return ConditionCheck(kind, TRUE, "MostAvailable" if missing else "Available", message)


def stream_reachable(telemetry: Mapping[str, Any] | None) -> ConditionCheck:
    """Return whether the analyzer reads from Redis."""
    if not telemetry or "streamReachable" not in telemetry:
        return ConditionCheck(STREAM_REACHABLE, UNKNOWN, *_NO_TELEMETRY)
    if telemetry["streamReachable"]:
        return ConditionCheck(STREAM_REACHABLE, TRUE, "Reachable", "the analyzer reads from Redis")
    message = "the analyzer cannot reach Redis: see its log, and check spec.redis"
    return ConditionCheck(STREAM_REACHABLE, FALSE, "Unreachable", message)


def nodes_reporting(facts: ConditionInputs) -> ConditionCheck:
    """Return whether the analyzer receives samples of at least nine of ten desired nodes.

    A collector that cannot reach Redis looks healthy to the kubelet: only here it is missing.
    """
    telemetry, workload = facts.trusted_telemetry, facts.collectors
    if workload is None or "nodesReporting" not in telemetry:
        return ConditionCheck(NODES_REPORTING, UNKNOWN, *_NO_TELEMETRY)
    silent = facts.silent_nodes
    message = f"{telemetry['nodesReporting']} of {workload.desired} nodes report"
    if not silent:
        return ConditionCheck(NODES_REPORTING, TRUE, "Reporting", message)
    if facts.settling:
        return ConditionCheck(NODES_REPORTING, facts.settling, STARTING, message)
    missing = _listed(facts.silent.names, silent) or "the others"
    message += f": no samples of {missing} arrive; {_SILENT_HINT}"
    if silent > workload.desired // TOLERATED:
        return ConditionCheck(NODES_REPORTING, FALSE, NODES_SILENT, message)
    return ConditionCheck(NODES_REPORTING, TRUE, "MostReporting", message)


def degraded(facts: ConditionInputs, telemetry: Mapping[str, Any] | None) -> ConditionCheck:
    """Return whether something is missing or done twice, although the whole works."""
    losses = [
        *_overlaps(facts.overlaps),
        *_missing_pods(facts),
        *_silent_nodes(facts),
        *_degradations(telemetry),
    ]
    if losses:
        message = "; ".join(loss.message for loss in losses)
        return ConditionCheck(DEGRADED, TRUE, losses[0].reason, message)
    if telemetry is None:
        return ConditionCheck(DEGRADED, UNKNOWN, *_NO_TELEMETRY)
    return ConditionCheck(DEGRADED, FALSE, "Complete", "nothing is missing")


def learning(telemetry: Mapping[str, Any] | None) -> ConditionCheck:
    """Return whether nodes are in warm-up: their baseline is not known yet."""
    if not telemetry or "nodesLearning" not in telemetry:
        return ConditionCheck(LEARNING, UNKNOWN, *_NO_TELEMETRY)
    count, reporting = telemetry["nodesLearning"], telemetry.get("nodesReporting", 0)
    if not reporting:
        message = (
            "no node reports yet; if this lasts, collectors do not reach Redis: see their logs"
        )
        return ConditionCheck(LEARNING, UNKNOWN, "NodesSilent", message)
    if count:
        message = (
            f"{count} of {reporting} nodes are in warm-up; only baseline-free signatures are"
            " reported for them"
        )
        return ConditionCheck(LEARNING, TRUE, "NodesLearning", message)
    message = f"the baselines of {reporting} nodes are known"
    return ConditionCheck(LEARNING, FALSE, "Learned", message)


def findings_recur(recurring: Sequence[Recurrence] | None) -> ConditionCheck:
    """Return whether a cause returns on a node: each finding may be short, the defect lasts."""
    if recurring is None:
        return ConditionCheck(FINDINGS_RECUR, UNKNOWN, "Pending", "the reports are not listed yet")
    if not recurring:
        return ConditionCheck(FINDINGS_RECUR, FALSE, "NoneRecurs", "no cause returns on a node")
    named = [
        f"{each.cause} on {each.node}: {each.findings} findings since {each.since[:16]}Z"
        for each in recurring[:_MOST_NAMED]
    ]
    more = len(recurring) - len(named)
    message = "; ".join(named) + (f"; and {more} more" if more else "")
    return ConditionCheck(FINDINGS_RECUR, TRUE, "CausesReturn", message)


def find(known: Sequence[Condition], kind: str) -> Condition:
    """Return the condition of that type; an unknown one where there is none."""
    unknown = {"type": kind, "status": UNKNOWN, "reason": "", "message": ""}
    return next((condition for condition in known if condition.get("type") == kind), unknown)


def is_failing(condition: Condition) -> bool:
    """Return whether somebody must act; waiting for a start needs nobody."""
    status, reason = condition["status"], condition["reason"]
    return bool(status == FALSE and reason not in _QUIET)


_NO_TELEMETRY = ("TelemetryPending", "the analyzer has not reported yet")
_SILENT_HINT = (
    "if their collectors run, they cannot reach Redis or cannot read the node: see their logs"
)


def _absent(facts: ConditionInputs, what: str) -> tuple[str, str, str]:
    """Return status, reason and message for an object that does not exist."""
    if facts.rejected is not None:
        return FALSE, "NotCreated", f"no {what}: the spec was not accepted"
    if facts.refused is not None:
        return FALSE, facts.refused.reason, f"no {what}: {facts.refused.message}"
    if facts.paused:
        return FALSE, "Paused", f"no {what}: paused; set spec.paused to false to create them"
    return UNKNOWN, "Pending", f"the {what} are about to be created"


def _with_failure(message: str, failure: Failure | None) -> tuple[str, str]:
    """Return reason and message for pods that are not available."""
    if failure is None:
        return STARTING, message
    return failure.reason, f"{message}: {failure.message}"


def _overlaps(overlaps: Sequence[ProfileOverlap]) -> list[Failure]:
    return [
        Failure(
            NODES_OVERLAP,
            f"profile {other.profile} selects {other.nodes} of the same nodes "
            f"(such as {other.example}): each profile runs its own collectors there",
        )
        for other in overlaps
    ]


def _missing_pods(facts: ConditionInputs) -> list[Failure]:
    """Return the few pods that are missing where most are available, and what stops a roll-out."""
    losses = []
    for reason, word, workload, failure in (
        ("CollectorsMissing", "collectors", facts.collectors, facts.collectors_failure),
        ("AnalyzersMissing", "analyzers", facts.analyzer, facts.analyzer_failure),
    ):
        if workload is None or not workload.available:
            continue
        missing = workload.desired - workload.available
        # a roll-out has missing pods by itself, but none that cannot start
        lasting = failure is not None and failure.reason not in TRANSIENT
        if missing > 0 and (lasting or not workload.is_rolling):
            message = f"{missing} of {workload.desired} {word} are not available"
            losses.append(_loss(reason, message, failure))
        elif lasting and workload.is_rolling:
            message = f"the roll-out of the {word} does not proceed"
            losses.append(_loss("RollOutStuck", message, failure))
    return losses


def _loss(reason: str, message: str, failure: Failure | None) -> Failure:
    return Failure(reason, f"{message}: {failure.message}" if failure else message)


def _silent_nodes(facts: ConditionInputs) -> list[Failure]:
    """Return the nodes that do not report although their collectors are available."""
    workload = facts.collectors
    if workload is None or facts.settling:
        return []
    silent = facts.silent_nodes - max(0, workload.desired - workload.available)
    if silent <= 0:
        return []
    names = _listed(facts.silent.with_collector, silent)
    message = f"{silent} of {workload.available} nodes with a collector send no samples"
    message += f" ({names})" if names else ""
    return [Failure(NODES_SILENT, f"{message}: {_SILENT_HINT}")]


def _listed(names: Sequence[str], count: int) -> str:
    """Return the first of the names and how many more there are; "" without a name."""
    named = names[:_MOST_NAMED]
    more = count - len(named)
    return ", ".join(named) + (f" and {more} more" if more > 0 and named else "")


def _degradations(telemetry: Mapping[str, Any] | None) -> list[Failure]:
    return [
        Failure(loss["reason"], f"{loss['message']} (on {loss['nodes']} nodes)")
        for loss in (telemetry or {}).get("degraded") or ()
    ]


def _pair(failure: Failure | None) -> tuple[str, str]:
    return (failure.reason, failure.message) if failure else ("", "")


def _dated(check: ConditionCheck, generation: int, before: Condition | None, now: str) -> Condition:
    same = before is not None and before.get("status") == check.status
    since = before.get("lastTransitionTime", now) if before is not None and same else now
    return {
        "type": check.type,
        "status": check.status,
        "reason": check.reason,
        "message": clipped(check.message, MAX_MESSAGE),
        "observedGeneration": generation,
        "lastTransitionTime": since,
    }
