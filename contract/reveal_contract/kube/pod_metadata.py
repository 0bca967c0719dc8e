"""What the metadata of a pod says of its controller and of the job that it belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Labels that pods of one job have in common, whichever controllers own them; the first one counts.
# A group of a LeaderWorkerSet is a job by itself.
_GROUP_INDEX = "leaderworkerset.sigs.k8s.io/group-index"
_JOB_LABELS = {
    "reveal.dev/job": "Job",
    "jobset.sigs.k8s.io/jobset-name": "JobSet",
    "leaderworkerset.sigs.k8s.io/name": "LeaderWorkerSet",
    "training.kubeflow.org/job-name": "TrainingJob",
    "ray.io/cluster": "RayCluster",
    "volcano.sh/job-name": "VolcanoJob",
    "kueue.x-k8s.io/pod-group-name": "PodGroup",
    "scheduling.x-k8s.io/pod-group": "PodGroup",
}


def controller_of(metadata: Mapping[str, Any]) -> str:
    """Return ``Kind/name`` of the controller; "" for none."""
    rows = metadata.get("ownerReferences")
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, Mapping) and row.get("controller") is True:
            return f"{text_of(row, 'kind')}/{text_of(row, 'name')}"
    return ""


def job_of(metadata: Mapping[str, Any]) -> str:
    """Return ``Kind/name`` of the job that the labels name; "" for none."""
    labels = metadata.get("labels")
    if not isinstance(labels, Mapping):
        return ""
    for label, kind in _JOB_LABELS.items():
        if name := text_of(labels, label):
            group = text_of(labels, _GROUP_INDEX) if kind == "LeaderWorkerSet" else ""
            return f"{kind}/{name}-{group}" if group else f"{kind}/{name}"
    return ""


def text_of(row: Mapping[str, Any], key: str) -> str:
    """Return a text of an object from outside; "" for anything else."""
    value = row.get(key)
    return value if isinstance(value, str) else ""
