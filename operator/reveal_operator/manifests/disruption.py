"""The PodDisruptionBudget: of several analyzers one at a time may be evicted."""

from __future__ import annotations

from reveal_contract.kube.names import ANALYZER
from reveal_operator.manifests.common import Manifest, labels, metadata
from reveal_operator.profile import Defaults, Profile


def disruption_budget(profile: Profile, defaults: Defaults) -> Manifest:
    """Return the budget for several analyzers; for a single one it would block node drains."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(profile, defaults, ANALYZER),
        "spec": {
            "maxUnavailable": 1,
            "selector": {"matchLabels": labels(profile, ANALYZER)},
        },
    }
