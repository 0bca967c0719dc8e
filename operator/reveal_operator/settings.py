"""What a profile means for the processes in its pods: the settings both sides know."""

from __future__ import annotations

import json

from reveal_contract.kube.names import HOST_FOLDER, HYPOTHESES_FOLDER, METRICS_PORT
from reveal_contract.settings import AnalyzerSettings, CollectorSettings
from reveal_operator.profile import Mode, Profile

# each pod has its own, in its environment: no part of the file that all pods share
PER_POD = ("node", "redisUrl")
_PUBLISH = {Mode.REPORT: "kubernetes", Mode.OBSERVE: "observe"}


def collector_settings(profile: Profile, node: str, redis_url: str) -> CollectorSettings:
    """Settings of the collector on a node; the host's file systems are seen below ``/host``."""
    wanted = profile.collector
    return CollectorSettings(
        node=node,
        redis_url=redis_url,
        profile=profile.name,
        proc_root=f"{HOST_FOLDER}/proc",
        sys_root=f"{HOST_FOLDER}/sys",
        cgroup_root=f"{HOST_FOLDER}/sys/fs/cgroup",
        sample_period_milliseconds=wanted.sample_period_milliseconds,
        include=wanted.sources.include,
        exclude=wanted.sources.exclude,
        max_subjects=wanted.max_subjects,
        pod_source="api",
        container_subjects=wanted.container_subjects,
        perf_cgroups=wanted.perf_cgroups,
        gpu_profiling=wanted.gpu_profiling,
        cpu_budget_millicores=wanted.cpu_budget_millicores,
        metrics_port=wanted.metrics_port,
        metrics_series=wanted.metrics_series,
    )


def analyzer_settings(profile: Profile, redis_url: str) -> AnalyzerSettings:
    """Settings of the profile's analyzers, the same for all of them."""
    wanted, told = profile.analyzer, profile.reporting
    return AnalyzerSettings(
        redis_url=redis_url,
        profile=profile.name,
        mode=wanted.mode.lower(),
        sensitivity=wanted.sensitivity,
        window_seconds=wanted.window_seconds,
        stride_seconds=wanted.stride_seconds,
        warmup_seconds=wanted.warmup_seconds,
        hypotheses=(HYPOTHESES_FOLDER,) if wanted.hypotheses else (),
        metrics_port=METRICS_PORT,
        publish=_PUBLISH[profile.mode],
        min_severity=told.min_severity,
        events=told.events,
        node_conditions=told.node_conditions,
        reports_per_minute=told.reports_per_minute,
    )


def to_file(settings: CollectorSettings | AnalyzerSettings) -> str:
    """The file in the ConfigMap: all but what each pod has in its environment."""
    known = json.loads(settings.to_json())
    shared = {key: value for key, value in known.items() if key not in PER_POD}
    return json.dumps(shared, indent=1, sort_keys=True)
