"""The objects of a profile: pure builders, one module for each kind of object.

Nothing here depends on the clock, the network or the environment.  The same profile gives the same
manifests in the same order, so that a hash shows whether something changed.
"""

from __future__ import annotations

import json

from reveal_contract.kube.names import ANALYZER_SETTINGS, COLLECTOR_SETTINGS
from reveal_operator.manifests.common import Manifest
from reveal_operator.manifests.configmap import configmap
from reveal_operator.manifests.daemonset import daemonset
from reveal_operator.manifests.deployment import deployment
from reveal_operator.manifests.disruption import disruption_budget
from reveal_operator.profile import Defaults, Profile
from reveal_operator.spec import redis_of

__all__ = ["Manifest", "children"]


def owned_manifests(profile: Profile, defaults: Defaults) -> tuple[Manifest, ...]:
    """Return ConfigMap, DaemonSet, Deployment and, for several analyzers, PodDisruptionBudget.

    They are in the order of application.  Raises ``SpecError`` where neither profile nor operator
    names a Redis.
    """
    redis = redis_of(profile, defaults)
    settings = configmap(profile, defaults)
    files = settings["data"]
    manifests = [
        settings,
        daemonset(profile, defaults, redis, files[COLLECTOR_SETTINGS]),
        deployment(profile, defaults, redis, files[ANALYZER_SETTINGS]),
    ]
    if profile.analyzer.replicas > 1:
        manifests.append(disruption_budget(profile, defaults))
    return tuple(_plain(each) for each in manifests)


def _plain(manifest: Manifest) -> Manifest:
    """Return a copy as plain JSON, which shares nothing with other manifests or the profile."""
    copied: Manifest = json.loads(json.dumps(manifest))
    return copied
