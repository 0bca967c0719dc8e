"""Why pods are not available, from the pods of one DaemonSet or Deployment: pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Pod = Mapping[str, Any]

# reason of a waiting container -> our reason
_WAITING = {
    "ImagePullBackOff": "ImagePullFailed",
    "ErrImagePull": "ImagePullFailed",
    "ErrImageNeverPull": "ImagePullFailed",
    "InvalidImageName": "ImagePullFailed",
    "ImageInspectError": "ImagePullFailed",
    "CrashLoopBackOff": "CrashLooping",
    "CreateContainerConfigError": "ContainerNotStarted",
    "CreateContainerError": "ContainerNotStarted",
    "RunContainerError": "ContainerNotStarted",
}
_WORDS = {
    "Unschedulable": "not schedulable",
    "ImagePullFailed": "without an image",
    "CrashLooping": "crash-looping",
    "ContainerNotStarted": "with a container that cannot start",
    "PodFailed": "failed",
    "NotReady": "running, not ready",
    "Waiting": "starting",
}
# reasons that pods have during a roll-out only because they are new
TRANSIENT = frozenset(("NotReady", "Waiting", "Unavailable"))


@dataclass(frozen=True, slots=True)
class Failure:
    """Why something does not work: the reason of a condition, and a sentence."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class _PodFailure:
    reason: str
    where: str
    message: str


def explain(pods: Iterable[Pod]) -> Failure | None:
    """Return why pods are not ready, the most frequent reason first; None where all are ready."""
    groups: dict[str, list[_PodFailure]] = {}
    for pod in pods:
        if (failure := _failure_of_pod(pod)) is not None:
            groups.setdefault(failure.reason, []).append(failure)
    if not groups:
        return None
    ordered = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
    return Failure(ordered[0][0], "; ".join(_sentence(*group) for group in ordered))


def node_of(pod: Pod) -> str:
    """Return the node that a pod runs on, or is meant for; "" where that is not known."""
    return str((pod.get("spec") or {}).get("nodeName") or _intended_node(pod))


def is_ready(pod: Pod) -> bool:
    """Return whether all containers of a pod are ready."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return _is({each.get("type"): each for each in conditions}, "Ready", "True")


def _sentence(reason: str, failures: list[_PodFailure]) -> str:
    first = min(failures, key=lambda failure: failure.where)
    message = f": {first.message}" if first.message else ""
    return f"{len(failures)} {_WORDS[reason]} ({first.where}{message})"


def _failure_of_pod(pod: Pod) -> _PodFailure | None:
    status = pod.get("status") or {}
    where = node_of(pod) or pod["metadata"]["name"]
    conditions = {each.get("type"): each for each in status.get("conditions") or ()}
    if "deletionTimestamp" in pod["metadata"] or _is(conditions, "Ready", "True"):
        return None
    if status.get("phase") == "Failed":
        return _PodFailure("PodFailed", where, _reason_and_message(status))
    if _is(conditions, "PodScheduled", "False"):
        message = conditions["PodScheduled"].get("message", "")
        return _PodFailure("Unschedulable", where, message)
    for container in _containers(status):
        if (found := _failure_of_container(container)) is not None:
            return _PodFailure(found.reason, where, found.message)
    reason = "NotReady" if status.get("phase") == "Running" else "Waiting"
    return _PodFailure(reason, where, "")


def _failure_of_container(container: Mapping[str, Any]) -> Failure | None:
    state = container.get("state") or {}
    waiting, ended = state.get("waiting"), state.get("terminated")
    if waiting and (reason := _WAITING.get(waiting.get("reason", ""))) is not None:
        if reason == "CrashLooping":
            return Failure(reason, _last_end(container))
        return Failure(reason, _reason_and_message(waiting))
    if ended and ended.get("exitCode"):
        return Failure("CrashLooping", _last_end(container))
    return None


def _last_end(container: Mapping[str, Any]) -> str:
    """Return how the container ended last, and how often it was restarted."""
    state, last = container.get("state") or {}, container.get("lastState") or {}
    ended = state.get("terminated") or last.get("terminated") or {}
    code = f"exit code {ended['exitCode']}" if "exitCode" in ended else "unknown end"
    reason = f" {ended['reason']}" if ended.get("reason") not in (None, "Error") else ""
    message = f", {ended['message'].strip()}" if ended.get("message") else ""
    return f"{code}{reason} after {container.get('restartCount', 0)} restarts{message}"


def _containers(status: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    init, main = status.get("initContainerStatuses"), status.get("containerStatuses")
    return [*(init or ()), *(main or ())]


def _reason_and_message(part: Mapping[str, Any]) -> str:
    return ", ".join(part[key] for key in ("reason", "message") if part.get(key))


def _is(conditions: Mapping[str, Mapping[str, Any]], kind: str, status: str) -> bool:
    return kind in conditions and conditions[kind].get("status") == status


def _intended_node(pod: Pod) -> str:
    """Return the node of a DaemonSet's pod before it is bound: it is in the affinity."""
    affinity = ((pod.get("spec") or {}).get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    for term in required.get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            if field.get("key") == "metadata.name" and field.get("values"):
                return str(field["values"][0])
    return ""
