"""Why pods are not available, in words: pure, from the pods of one DaemonSet or Deployment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Pod = Mapping[str, Any]

# what a container waits for -> our reason
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
    "Waiting": "being started",
}
# what a roll-out shows of pods that are only new
PASSING = frozenset(("NotReady", "Waiting", "Unavailable"))


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why something is not available: one word, and a sentence."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class _Complaint:
    reason: str
    where: str
    told: str


def explain(pods: Iterable[Pod]) -> Trouble | None:
    """What is wrong with those that are not ready, most frequent first; None where nothing is."""
    groups: dict[str, list[_Complaint]] = {}
    for pod in pods:
        if (complaint := _complaint(pod)) is not None:
            groups.setdefault(complaint.reason, []).append(complaint)
    if not groups:
        return None
    ordered = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
    return Trouble(ordered[0][0], "; ".join(_sentence(*group) for group in ordered))


def _sentence(reason: str, complaints: list[_Complaint]) -> str:
    first = min(complaints, key=lambda complaint: complaint.where)
    told = f": {first.told}" if first.told else ""
    return f"{len(complaints)} {_WORDS[reason]} ({first.where}{told})"


def _complaint(pod: Pod) -> _Complaint | None:
    status = pod.get("status") or {}
    where = (pod.get("spec") or {}).get("nodeName") or _wanted_node(pod) or pod["metadata"]["name"]
    conditions = {one.get("type"): one for one in status.get("conditions") or ()}
    if "deletionTimestamp" in pod["metadata"] or _is(conditions, "Ready", "True"):
        return None
    if status.get("phase") == "Failed":
        return _Complaint("PodFailed", where, _told(status))
    if _is(conditions, "PodScheduled", "False"):
        return _Complaint("Unschedulable", where, conditions["PodScheduled"].get("message", ""))
    for container in _containers(status):
        if (found := _of_container(container)) is not None:
            return _Complaint(found.reason, where, found.message)
    reason = "NotReady" if status.get("phase") == "Running" else "Waiting"
    return _Complaint(reason, where, "")


def _of_container(container: Mapping[str, Any]) -> Trouble | None:
    state = container.get("state") or {}
    waiting, ended = state.get("waiting"), state.get("terminated")
    if waiting and (reason := _WAITING.get(waiting.get("reason", ""))) is not None:
        if reason == "CrashLooping":
            return Trouble(reason, _ending(container))
        return Trouble(reason, _told(waiting))
    if ended and ended.get("exitCode"):
        return Trouble("CrashLooping", _ending(container))
    return None


def _ending(container: Mapping[str, Any]) -> str:
    """How the container ended last, and how often that happened."""
    state, last = container.get("state") or {}, container.get("lastState") or {}
    ended = state.get("terminated") or last.get("terminated") or {}
    how = f"exit code {ended['exitCode']}" if "exitCode" in ended else "unknown end"
    why = f" {ended['reason']}" if ended.get("reason") not in (None, "Error") else ""
    said = f", {ended['message'].strip()}" if ended.get("message") else ""
    return f"{how}{why} after {container.get('restartCount', 0)} restarts{said}"


def _containers(status: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    init, main = status.get("initContainerStatuses"), status.get("containerStatuses")
    return [*(init or ()), *(main or ())]


def _told(part: Mapping[str, Any]) -> str:
    return ", ".join(part[key] for key in ("reason", "message") if part.get(key))


def _is(conditions: Mapping[str, Mapping[str, Any]], kind: str, status: str) -> bool:
    return kind in conditions and conditions[kind].get("status") == status


def _wanted_node(pod: Pod) -> str:
    """The node that a DaemonSet's pod waits for: it is in the affinity, before it is bound."""
    affinity = ((pod.get("spec") or {}).get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    for term in required.get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            if field.get("key") == "metadata.name" and field.get("values"):
                return str(field["values"][0])
    return ""
