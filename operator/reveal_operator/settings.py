"""The settings of the processes in a profile's pods."""

from __future__ import annotations

from reveal_contract.kube.names import (
    EVIDENCE_FOLDER,
    HOST_FOLDER,
    HYPOTHESES_FOLDER,
    METRICS_PORT,
    ORIGIN_FOLDER,
    ORIGIN_TOKEN,
    SAMPLES_PORT,
)
from reveal_contract.settings import AnalyzerSettings, CollectorSettings
from reveal_contract.sources import WITH_PERF_CGROUPS
from reveal_operator.profile import (
    LOGS_FOLDER,
    WITHHELD_SOURCES,
    CollectorSpec,
    Mode,
    PodSource,
    Privilege,
    Profile,
)

# each pod has its own, in its environment: not in the file that all pods share
PER_POD = ("node", "redisUrl")
_TOKEN_FILE = f"{ORIGIN_FOLDER}/{ORIGIN_TOKEN}"
_PUBLISH = {Mode.REPORT: "kubernetes", Mode.OBSERVE: "observe"}


def collector_settings(profile: Profile, node: str, redis_url: str) -> CollectorSettings:
    """Return the settings of the collector on a node; the host is mounted at ``/host``."""
    spec = profile.collector
    return CollectorSettings(
        node=node,
        redis_url=redis_url,
        profile=profile.name,
        proc_root=f"{HOST_FOLDER}/proc",
        sys_root=f"{HOST_FOLDER}/sys",
        cgroup_root=f"{HOST_FOLDER}/sys/fs/cgroup",
        sample_period_milliseconds=spec.sample_period_milliseconds,
        include=spec.sources.include,
        exclude=tuple(dict.fromkeys((*spec.sources.exclude, *_withheld(spec)))),
        max_subjects=spec.max_subjects,
        pod_source=spec.pod_source.lower(),
        pod_logs_folder=f"{HOST_FOLDER}{LOGS_FOLDER}",
        container_subjects=spec.container_subjects,
        perf_cgroups=spec.perf_cgroups,
        gpu_profiling=spec.gpu_profiling,
        cpu_budget_millicores=spec.cpu_budget_millicores,
        origin_token_file=_TOKEN_FILE if profile.analyzer.proves_origin else "",
        metrics_port=spec.metrics_port,
        metrics_series=spec.metrics_series,
    )


def _withheld(spec: CollectorSpec) -> list[str]:
    """Return the sources that the privilege level leaves out, of those that there are."""
    if spec.privilege is not Privilege.RESTRICTED:
        return []
    absent = () if spec.perf_cgroups else WITH_PERF_CGROUPS
    return [name for name in WITHHELD_SOURCES if name not in absent]


def analyzer_settings(profile: Profile, redis_url: str) -> AnalyzerSettings:
    """Return the settings of the profile's analyzers, the same for all of them."""
    spec, reporting, evidence = profile.analyzer, profile.reporting, profile.evidence
    return AnalyzerSettings(
        redis_url=redis_url,
        profile=profile.name,
        mode=spec.mode.lower(),
        sensitivity=spec.sensitivity,
        window_seconds=spec.window_seconds,
        stride_seconds=spec.stride_seconds,
        warmup_seconds=spec.warmup_seconds,
        hypotheses=(HYPOTHESES_FOLDER,) if spec.hypotheses else (),
        metrics_port=METRICS_PORT,
        metrics_subjects=spec.metrics_subjects,
        publish=_PUBLISH[profile.mode],
        min_severity=reporting.min_severity,
        events=reporting.events,
        node_conditions=reporting.node_conditions,
        max_node_conditions_percent=reporting.max_node_conditions_percent,
        cluster_nodes_only=True,
        join_pods=profile.collector.pod_source is PodSource.LOGS,
        origin_proof=spec.origin_proof.lower(),
        reports_per_minute=reporting.reports_per_minute,
        gpu_hour_price=reporting.gpu_hour_price,
        evidence_store=evidence.store.lower(),
        evidence_folder=EVIDENCE_FOLDER if evidence.claim_name else "",
        evidence_retention_seconds=evidence.retention_seconds,
        evidence_max_bytes=evidence.max_bytes,
        evidence_history_hours=evidence.history_hours,
        samples_port=SAMPLES_PORT,
        otlp_endpoint=reporting.otlp.endpoint if reporting.otlp else "",
    )


def to_file(settings: CollectorSettings | AnalyzerSettings) -> str:
    """Return the file in the ConfigMap: all but what each pod has in its environment.

    Pods of an earlier image read it, too: while new ones roll out, and after a rollback.
    """
    return settings.lenient_json(leave_out=PER_POD)
