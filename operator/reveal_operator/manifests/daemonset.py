"""The DaemonSet of the collectors: one on each node of the profile."""

from __future__ import annotations

from typing import Any

from reveal_contract.kube.names import (
    ANNOTATION_SETTINGS,
    COLLECTOR,
    COLLECTOR_SETTINGS,
    HOST_FOLDER,
    ORIGIN_FOLDER,
    ORIGIN_TOKEN,
    RUN_FOLDER,
    SETTINGS_FOLDER,
)
from reveal_contract.origin import AUDIENCE
from reveal_operator.manifests import metrics_access, probes, redis, security
from reveal_operator.manifests.common import (
    REVISIONS,
    SETTINGS,
    Manifest,
    fingerprint,
    labels,
    metadata,
    mount,
    pod_environment,
    pull_secrets,
    resources,
    run_mount,
    run_volume,
    settings_volume,
)
from reveal_operator.manifests.nodes import placement
from reveal_operator.manifests.privileges import NeedKind, names_of
from reveal_operator.profile import Defaults, PodSource, Profile, RedisSpec

# The collector takes 20 s at most to deliver slices to Redis; the rest is for a slow node.
GRACE_SECONDS = 30
# a tenth of the nodes at once: 1,000 nodes take ten rounds, and most stay monitored
MOST_UNAVAILABLE = "10%"
_RUN_SIZE = "1Mi"  # two empty files
_ORIGIN = "origin"
_TOKEN_SECONDS = 3600
# API servers know the field from 1.30 on
_RECURSIVE_MINOR = 30


def daemonset(profile: Profile, defaults: Defaults, redis_: RedisSpec, settings: str) -> Manifest:
    """Return the DaemonSet; another ``settings`` file makes new pods."""
    own = labels(profile, COLLECTOR)
    minor = defaults.kubernetes_minor
    annotations = {
        ANNOTATION_SETTINGS: fingerprint(settings),
        **security.annotations_of_collector(profile.collector, COLLECTOR, minor),
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": metadata(profile, defaults, COLLECTOR),
        "spec": {
            "revisionHistoryLimit": REVISIONS,
            "selector": {"matchLabels": own},
            "updateStrategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxUnavailable": MOST_UNAVAILABLE},
            },
            "template": {
                "metadata": {"labels": own, "annotations": annotations},
                "spec": _pod(profile, defaults, redis_),
            },
        },
    }


def _pod(profile: Profile, defaults: Defaults, redis_: RedisSpec) -> Manifest:
    spec = profile.collector
    classes = {
        "runtimeClassName": spec.runtime_class_name,
        "priorityClassName": spec.priority_class_name,
    }
    return {
        **{name: value for name, value in classes.items() if value},
        **placement(profile),
        "serviceAccountName": defaults.collector_service_account,
        # to watch the pods of its node
        "automountServiceAccountToken": spec.pod_source is PodSource.API,
        "enableServiceLinks": False,
        **dict.fromkeys(names_of(spec, NeedKind.NAMESPACE), True),
        # Redis may be a Service, whose name the resolver of the host does not know
        "dnsPolicy": "ClusterFirstWithHostNet",
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        **pull_secrets(defaults),
        "containers": [_container(profile, defaults, redis_)],
        "volumes": [
            settings_volume(profile, COLLECTOR_SETTINGS),
            run_volume(_RUN_SIZE),
            *(_host_volume(path, name) for name, path in _host_paths(profile).items()),
            *redis.volumes(redis_),
            *([_origin_volume()] if profile.analyzer.proves_origin else []),
            *metrics_access.volumes(_metrics_secret(profile, defaults)),
        ],
    }


def _origin_volume() -> Manifest:
    """Return the volume with a token of the pod, which the kubelet renews; see ``origin``."""
    token = {"audience": AUDIENCE, "expirationSeconds": _TOKEN_SECONDS, "path": ORIGIN_TOKEN}
    return {"name": _ORIGIN, "projected": {"sources": [{"serviceAccountToken": token}]}}


def _container(profile: Profile, defaults: Defaults, redis_: RedisSpec) -> Manifest:
    spec = profile.collector
    return {
        "name": COLLECTOR,
        "image": spec.image or defaults.collector_image,
        "imagePullPolicy": defaults.image_pull_policy,
        "command": ["reveal-collector"],
        "args": [
            "--settings", f"{SETTINGS_FOLDER}/{COLLECTOR_SETTINGS}",
            "--run-folder", RUN_FOLDER,
            "--log-format", "json",
        ],
        "env": [*pod_environment(), *redis.of_collector(redis_), *_variables(profile)],
        **_ports(profile),
        **resources(spec.resources),
        **probes.of_collector(),
        "securityContext": security.of_collector(spec, defaults.kubernetes_minor),
        "volumeMounts": [
            mount(SETTINGS, SETTINGS_FOLDER),
            run_mount(),
            *(
                _host_mount(name, path, defaults.kubernetes_minor)
                for name, path in _host_paths(profile).items()
            ),
            *redis.mounts(redis_),
            *([mount(_ORIGIN, ORIGIN_FOLDER)] if profile.analyzer.proves_origin else []),
            *metrics_access.mounts(_metrics_secret(profile, defaults)),
        ],
    }  # fmt: skip


def _metrics_secret(profile: Profile, defaults: Defaults) -> str:
    """Return the Secret of the metrics; "" where the profile's collectors serve none."""
    return defaults.metrics_secret if profile.collector.metrics_port else ""


def _variables(profile: Profile) -> list[Manifest]:
    pairs = (each.split("=", 1) for each in names_of(profile.collector, NeedKind.VARIABLE))
    return [{"name": name, "value": value} for name, value in pairs]


def _ports(profile: Profile) -> dict[str, Any]:
    """Return the port; on the host's network it must be declared as the host's, too."""
    port = profile.collector.metrics_port
    if not port:
        return {}
    named = {"name": probes.METRICS, "containerPort": port, "hostPort": port, "protocol": "TCP"}
    return {"ports": [named]}


def _host_paths(profile: Profile) -> dict[str, str]:
    """Return paths by volume name: those of the sources, then those of the profile."""
    needed = names_of(profile.collector, NeedKind.MOUNT)
    extra = profile.collector.extra_host_paths
    return {
        **{f"host{path.replace('/', '-')}": path for path in needed},
        **{f"host-extra-{index}": path for index, path in enumerate(extra)},
    }


def _host_volume(path: str, name: str) -> Manifest:
    return {"name": name, "hostPath": {"path": path}}


def _host_mount(name: str, path: str, minor: int) -> Manifest:
    """Return a mount that is read-only with all that is mounted below it, if the runtime can.

    Otherwise a cgroup tree below /sys would be writable.  The collector sees later mounts of the
    host only after a restart; tracefs and cgroups are mounted at boot.
    """
    read_only = mount(name, f"{HOST_FOLDER}{path}")
    if minor < _RECURSIVE_MINOR:
        return read_only
    return {**read_only, "recursiveReadOnly": "IfPossible"}
