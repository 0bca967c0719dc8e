"""Which nodes get a collector."""

from __future__ import annotations

from typing import Any

from reveal_operator.profile import Profile

# One of them must be "true".  GPU Feature Discovery labels what a driver runs on; Node Feature
# Discovery the PCI vendor 10de, alone as the GPU operator sets it up, or after the class (03xx,
# display controllers) as it does by itself.
GPU_LABELS = (
    "nvidia.com/gpu.present",
    "feature.node.kubernetes.io/pci-10de.present",
    "feature.node.kubernetes.io/pci-0300_10de.present",
    "feature.node.kubernetes.io/pci-0302_10de.present",
)


def placement(profile: Profile) -> dict[str, Any]:
    """The fields of a pod spec; nodes with NVIDIA GPUs where the profile does not choose."""
    made: dict[str, Any] = {}
    if profile.node_selector:
        made["nodeSelector"] = dict(profile.node_selector)
    if profile.node_affinity:
        made["affinity"] = {"nodeAffinity": dict(profile.node_affinity)}
    if not made:
        made["affinity"] = {"nodeAffinity": _gpu_nodes()}
    if profile.tolerations:
        made["tolerations"] = [dict(toleration) for toleration in profile.tolerations]
    return made


def _gpu_nodes() -> dict[str, Any]:
    terms = [
        {"matchExpressions": [{"key": label, "operator": "In", "values": ["true"]}]}
        for label in GPU_LABELS
    ]
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
