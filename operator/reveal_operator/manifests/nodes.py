"""Which nodes have a collector."""

from __future__ import annotations

from typing import Any

from reveal_operator.profile import Profile

# One of them must be "true".  GPU Feature Discovery labels nodes with a driver.  Node Feature
# Discovery labels the PCI vendor 10de: alone as the GPU operator configures it, or by default after
# the class (03xx, display controllers).
GPU_LABELS = (
    "nvidia.com/gpu.present",
    "feature.node.kubernetes.io/pci-10de.present",
    "feature.node.kubernetes.io/pci-0300_10de.present",
    "feature.node.kubernetes.io/pci-0302_10de.present",
)


def placement(profile: Profile) -> dict[str, Any]:
    """Return the fields of a pod spec; by default for nodes with NVIDIA GPUs."""
    fields: dict[str, Any] = {}
    if profile.node_selector:
        fields["nodeSelector"] = dict(profile.node_selector)
    if profile.node_affinity:
        fields["affinity"] = {"nodeAffinity": dict(profile.node_affinity)}
    if not fields:
        fields["affinity"] = {"nodeAffinity": _gpu_nodes()}
    if profile.tolerations:
        fields["tolerations"] = [dict(toleration) for toleration in profile.tolerations]
    return fields


def _gpu_nodes() -> dict[str, Any]:
    terms = [
        {"matchExpressions": [{"key": label, "operator": "In", "values": ["true"]}]}
        for label in GPU_LABELS
    ]
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
