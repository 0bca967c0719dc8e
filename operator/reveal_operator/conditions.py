"""The conditions of a RevealProfile: pure, from what is known of it now.

Each check gives one ``metav1.Condition``; ``Ready`` takes its reason from the first check that
fails, else from the first that does not know.  Conventions: typical status properties in
https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reveal_contract.kube.names import clipped
from reveal_operator.seen import Workload
from reveal_operator.troubles import PASSING, Trouble

Condition = dict[str, Any]

READY = "Ready"
SPEC_ACCEPTED = "SpecAccepted"
COLLECTORS_AVAILABLE = "CollectorsAvailable"
ANALYZER_AVAILABLE = "AnalyzerAvailable"
STREAM_REACHABLE = "StreamReachable"
DEGRADED = "Degraded"
LEARNING = "Learning"

TRUE, FALSE, UNKNOWN = "True", "False", "Unknown"
MAX_MESSAGE = 2048  # bytes; the schema in crds/
NODES_OVERLAP = "NodesOverlap"
STARTING = "Starting"
# one collector in so many may be away, as DaemonSets roll out and as nodes of a large cluster are
SPARE = 10
# of a profile that waits for nothing but time, or for its nodes: nothing that people must see to
_QUIET = frozenset((STARTING, "Pending", "Paused", "NoNodes", "NotCreated"))


@dataclass(frozen=True, slots=True)
class Overlap:
    """Another profile that selects nodes of this one."""

    profile: str
    nodes: int
    example: str


@dataclass(frozen=True)
class Facts:
    """All that the conditions follow from.

    ``rejected`` is what is wrong with the spec, ``refused`` what the API server would not take;
    ``collectors`` and ``analyzer`` are None where there is no such child, their ``…_trouble`` is
    None where nobody looked yet.  ``telemetry`` is what the analyzer says.
    """

    generation: int
    paused: bool = False
    rejected: Trouble | None = None
    refused: Trouble | None = None
    collectors: Workload | None = None
    collectors_trouble: Trouble | None = None
    analyzer: Workload | None = None
    analyzer_trouble: Trouble | None = None
    telemetry: Mapping[str, Any] | None = None
    overlaps: tuple[Overlap, ...] = ()


@dataclass(frozen=True, slots=True)
class Check:
    """One condition before it has a time."""

    type: str
    status: str
    reason: str
    message: str


def conditions(facts: Facts, before: Sequence[Condition], now: str) -> list[Condition]:
    """All conditions; times of those whose status stays are kept from ``before``.

    ``now`` is RFC 3339 in whole seconds.
    """
    known = {condition["type"]: condition for condition in before}
    return [_dated(check, facts.generation, known.get(check.type), now) for check in judge(facts)]


def judge(facts: Facts) -> list[Check]:
    """What is so, Ready first."""
    analyzer = analyzer_available(facts)
    trusted = facts.telemetry if analyzer.status == TRUE else None
    parts = [
        spec_accepted(facts),
        collectors_available(facts),
        analyzer,
        stream_reachable(trusted),
    ]
    return [ready(facts, parts), *parts, degraded(facts, trusted), learning(trusted)]


def ready(facts: Facts, parts: Sequence[Check]) -> Check:
    """Whether all that was asked for works."""
    spec, *others = parts
    applied = Check("", FALSE if facts.refused else TRUE, *_pair(facts.refused))
    checks = [spec, applied, *others]
    for status in (FALSE, UNKNOWN):
        for check in checks:
            if check.status == status:
                return Check(READY, status, check.reason, check.message)
    nodes = facts.collectors.ready if facts.collectors else 0
    if facts.paused:
        told = "paused: works as it was set up last, changes are not applied"
        return Check(READY, TRUE, "Paused", told)
    return Check(READY, TRUE, "Watching", f"{nodes} nodes are watched")


def spec_accepted(facts: Facts) -> Check:
    if facts.rejected is None:
        return Check(SPEC_ACCEPTED, TRUE, "Accepted", "the spec makes sense")
    return Check(SPEC_ACCEPTED, FALSE, facts.rejected.reason, facts.rejected.message)


def collectors_available(facts: Facts) -> Check:
    """Whether the nodes have a collector, but for one in ten."""
    made, kind = facts.collectors, COLLECTORS_AVAILABLE
    if made is None:
        return Check(kind, *_absent(facts, "collectors"))
    if not made.desired:
        if not made.current:
            return Check(kind, UNKNOWN, "Pending", "the DaemonSet was made a moment ago")
        told = (
            "no node is selected: label nodes as spec.nodeSelector or spec.nodeAffinity ask "
            "(by default, nodes with NVIDIA GPUs as GPU or Node Feature Discovery label them)"
        )
        return Check(kind, FALSE, "NoNodes", told)
    told = f"{made.available} of {made.desired} collectors are available"
    missing, rolling = made.desired - made.available, is_rolling(made)
    if missing > max(made.desired // SPARE, rolling and made.desired > 1):
        return Check(kind, FALSE, *_because(told, facts.collectors_trouble))
    if rolling:
        told += f", {made.updated} have the latest settings"
        return Check(kind, TRUE, "RollingOut", told)
    return Check(kind, TRUE, "MostAvailable" if missing else "Available", told)


def analyzer_available(facts: Facts) -> Check:
    """Whether one at least works: it takes over what others leave."""
    made, kind = facts.analyzer, ANALYZER_AVAILABLE
    if made is None:
        return Check(kind, *_absent(facts, "analyzer"))
    told = f"{made.available} of {made.desired} analyzers are available"
    if not made.available:
        return Check(kind, FALSE, *_because(told, facts.analyzer_trouble))
    if is_rolling(made):
        return Check(kind, TRUE, "RollingOut", told)
    missing = made.available < made.desired
    return Check(kind, TRUE, "MostAvailable" if missing else "Available", told)


def stream_reachable(telemetry: Mapping[str, Any] | None) -> Check:
    if not telemetry or "streamReachable" not in telemetry:
        return Check(STREAM_REACHABLE, UNKNOWN, *_NO_TELEMETRY)
    if telemetry["streamReachable"]:
        return Check(STREAM_REACHABLE, TRUE, "Reachable", "the analyzer reads from Redis")
    told = "the analyzer cannot reach Redis: see its log, and spec.redis"
    return Check(STREAM_REACHABLE, FALSE, "Unreachable", told)


def degraded(facts: Facts, telemetry: Mapping[str, Any] | None) -> Check:
    """Whether something is gone without, or done twice, though the whole works."""
    losses = [*_overlaps(facts.overlaps), *_absentees(facts), *_gone_without(telemetry)]
    if losses:
        told = "; ".join(loss.message for loss in losses)
        return Check(DEGRADED, TRUE, losses[0].reason, told)
    if telemetry is None:
        return Check(DEGRADED, UNKNOWN, *_NO_TELEMETRY)
    return Check(DEGRADED, FALSE, "Complete", "nothing is gone without")


def learning(telemetry: Mapping[str, Any] | None) -> Check:
    """Whether nodes are judged by certain causes only, as their usual is not known yet."""
    if not telemetry or "nodesLearning" not in telemetry:
        return Check(LEARNING, UNKNOWN, *_NO_TELEMETRY)
    count, reporting = telemetry["nodesLearning"], telemetry.get("nodesReporting", 0)
    if not reporting:
        told = "no node is heard yet; if that lasts, collectors do not reach Redis: see their logs"
        return Check(LEARNING, UNKNOWN, "NodesSilent", told)
    if count:
        told = f"{count} of {reporting} nodes are being learned: certain causes are told already"
        return Check(LEARNING, TRUE, "NodesLearning", told)
    return Check(LEARNING, FALSE, "Learned", f"{reporting} nodes are known")


def is_rolling(made: Workload) -> bool:
    """Whether pods of an older template are there still."""
    return made.updated < made.desired or not made.current


def find(known: Sequence[Condition], kind: str) -> Condition:
    """The condition of that type; one that knows nothing where there is none."""
    nothing = {"type": kind, "status": UNKNOWN, "reason": "", "message": ""}
    return next((condition for condition in known if condition.get("type") == kind), nothing)


def is_failing(condition: Condition) -> bool:
    """Whether somebody must see to it; waiting for a start is none of that."""
    status, reason = condition["status"], condition["reason"]
    return bool(status == FALSE and reason not in _QUIET)


_NO_TELEMETRY = ("TelemetryPending", "the analyzer has said nothing yet")


def _absent(facts: Facts, what: str) -> tuple[str, str, str]:
    """Status, reason and message where a child is not there."""
    if facts.rejected is not None:
        return FALSE, "NotCreated", f"no {what}: the spec was not accepted"
    if facts.refused is not None:
        return FALSE, facts.refused.reason, f"no {what}: {facts.refused.message}"
    if facts.paused:
        return FALSE, "Paused", f"no {what}: paused; set spec.paused to false to have them made"
    return UNKNOWN, "Pending", f"the {what} are about to be made"


def _because(told: str, trouble: Trouble | None) -> tuple[str, str]:
    """Reason and message of what is not available."""
    if trouble is None:
        return STARTING, told
    return trouble.reason, f"{told}: {trouble.message}"


def _overlaps(overlaps: Sequence[Overlap]) -> list[Trouble]:
    return [
        Trouble(
            NODES_OVERLAP,
            f"profile {other.profile} watches {other.nodes} of the same nodes too "
            f"(such as {other.example}): both run, each with collectors of its own",
        )
        for other in overlaps
    ]


def _absentees(facts: Facts) -> list[Trouble]:
    """The few pods that are missing where enough are there."""
    losses = []
    for reason, word, made, trouble in (
        ("CollectorsMissing", "collectors", facts.collectors, facts.collectors_trouble),
        ("AnalyzersMissing", "analyzers", facts.analyzer, facts.analyzer_trouble),
    ):
        if made is None or not 0 < made.available < made.desired:
            continue
        lasting = trouble is not None and trouble.reason not in PASSING
        if lasting or not is_rolling(made):
            told = f"{made.desired - made.available} of {made.desired} {word} are not available"
            losses.append(Trouble(reason, f"{told}: {trouble.message}" if trouble else told))
    return losses


def _gone_without(telemetry: Mapping[str, Any] | None) -> list[Trouble]:
    return [
        Trouble(loss["reason"], f"{loss['message']} (on {loss['nodes']} nodes)")
        for loss in (telemetry or {}).get("degraded") or ()
    ]


def _pair(trouble: Trouble | None) -> tuple[str, str]:
    return (trouble.reason, trouble.message) if trouble else ("", "")


def _dated(check: Check, generation: int, before: Condition | None, now: str) -> Condition:
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
