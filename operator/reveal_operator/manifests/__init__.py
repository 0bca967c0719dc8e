"""A profile as objects of the API: pure builders, one module a kind.

Nothing here asks the clock, the network or the environment; the same profile gives the same
manifests, in the same order, so that whoever applies them can tell by a hash that nothing is new.
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


def children(profile: Profile, defaults: Defaults) -> tuple[Manifest, ...]:
    """ConfigMap, DaemonSet, Deployment and, of several analyzers, PodDisruptionBudget.

    In the order in which they are to be applied.  Raises ``SpecError`` where neither profile nor
    operator names a Redis.
    """
    redis = redis_of(profile, defaults)
    settings = configmap(profile, defaults)
    files = settings["data"]
    made = [
        settings,
        daemonset(profile, defaults, redis, files[COLLECTOR_SETTINGS]),
        deployment(profile, defaults, redis, files[ANALYZER_SETTINGS]),
    ]
    if profile.analyzer.replicas > 1:
        made.append(disruption_budget(profile, defaults))
    return tuple(_plain(each) for each in made)


def _plain(manifest: Manifest) -> Manifest:
    """JSON and nothing else; no part of it shared with another manifest or with the profile."""
    copied: Manifest = json.loads(json.dumps(manifest))
    return copied
