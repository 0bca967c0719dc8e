"""The Deployment of the analyzers, which share the nodes by leases in Redis."""

from __future__ import annotations

from typing import Any

from reveal_contract.kube.names import (
    ANALYZER,
    ANALYZER_SETTINGS,
    ANNOTATION_SETTINGS,
    EVIDENCE_FOLDER,
    HYPOTHESES_FOLDER,
    METRICS_PORT,
    OTLP_HEADERS_VARIABLE,
    POD_VARIABLE,
    RUN_FOLDER,
    SETTINGS_FOLDER,
)
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
from reveal_operator.profile import Defaults, Profile, RedisSpec

HYPOTHESES = "hypotheses"
EVIDENCE = "evidence"
GRACE_SECONDS = 30  # leases are handed over and reports written in seconds
# the spool of pending reports, and loops that the libraries compiled
_RUN_SIZE = "64Mi"


def deployment(profile: Profile, defaults: Defaults, redis_: RedisSpec, settings: str) -> Manifest:
    """Return the Deployment; another ``settings`` file makes new pods."""
    own = labels(profile, ANALYZER)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(profile, defaults, ANALYZER),
        "spec": {
            "replicas": profile.analyzer.replicas,
            "revisionHistoryLimit": REVISIONS,
            "selector": {"matchLabels": own},
            # the new pod takes over the leases of the old one, so that no second is lost
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0},
            },
            "template": {
                "metadata": {
                    "labels": own,
                    "annotations": {ANNOTATION_SETTINGS: fingerprint(settings)},
                },
                "spec": _pod(profile, defaults, redis_),
            },
        },
    }


def _pod(profile: Profile, defaults: Defaults, redis_: RedisSpec) -> Manifest:
    return {
        **_spread(profile),
        "serviceAccountName": defaults.analyzer_service_account,
        "automountServiceAccountToken": True,  # it writes reports and the profile's telemetry
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "securityContext": security.of_analyzer_pod(),
        **pull_secrets(defaults),
        "containers": [_container(profile, defaults, redis_)],
        "volumes": [
            settings_volume(profile, ANALYZER_SETTINGS),
            run_volume(_RUN_SIZE),
            *_hypotheses_volume(profile),
            *_evidence_volume(profile),
            *redis.volumes(redis_),
            *metrics_access.volumes(defaults.metrics_secret),
        ],
    }


def _container(profile: Profile, defaults: Defaults, redis_: RedisSpec) -> Manifest:
    spec = profile.analyzer
    hypotheses = [mount(HYPOTHESES, HYPOTHESES_FOLDER)] if spec.hypotheses else []
    has_folder = bool(profile.evidence.claim_name)
    evidence = [mount(EVIDENCE, EVIDENCE_FOLDER, read_only=False)] if has_folder else []
    return {
        "name": ANALYZER,
        "image": spec.image or defaults.analyzer_image,
        "imagePullPolicy": defaults.image_pull_policy,
        "command": ["reveal-analyzer"],
        "args": [
            "--settings", f"{SETTINGS_FOLDER}/{ANALYZER_SETTINGS}",
            "--owner", f"$({POD_VARIABLE})",
            "--run-folder", RUN_FOLDER,
            "--log-format", "json",
        ],
        "env": [
            *pod_environment(),
            *redis.of_analyzer(redis_),
            *_otlp_headers(profile),
            # compiled loops stay for the next start of the container; no other folder is writable
            {"name": "TMPDIR", "value": RUN_FOLDER},
        ],
        "ports": [{"name": probes.METRICS, "containerPort": METRICS_PORT, "protocol": "TCP"}],
        **resources(spec.resources),
        **probes.of_analyzer(tls=bool(defaults.metrics_secret)),
        "securityContext": security.of_analyzer(),
        "volumeMounts": [
            mount(SETTINGS, SETTINGS_FOLDER),
            run_mount(),
            *hypotheses,
            *evidence,
            *redis.mounts(redis_),
            *metrics_access.mounts(defaults.metrics_secret),
        ],
    }  # fmt: skip


def _otlp_headers(profile: Profile) -> list[Manifest]:
    """Return the headers for the OpenTelemetry receiver, as the Secret has them at the start."""
    otlp = profile.reporting.otlp
    if otlp is None or otlp.headers is None:
        return []
    reference = {"name": otlp.headers.name, "key": otlp.headers.key}
    return [{"name": OTLP_HEADERS_VARIABLE, "valueFrom": {"secretKeyRef": reference}}]


def _hypotheses_volume(profile: Profile) -> list[Manifest]:
    name = profile.analyzer.hypotheses
    return [{"name": HYPOTHESES, "configMap": {"name": name}}] if name else []


def _evidence_volume(profile: Profile) -> list[Manifest]:
    claim = profile.evidence.claim_name
    return [{"name": EVIDENCE, "persistentVolumeClaim": {"claimName": claim}}] if claim else []


def _spread(profile: Profile) -> dict[str, Any]:
    """Return a constraint that spreads the pods: a node that fails takes only one of several.

    A single analyzer has it, too: adding a replica must not change the template and restart it.
    """
    return {
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": labels(profile, ANALYZER)},
            }
        ]
    }
