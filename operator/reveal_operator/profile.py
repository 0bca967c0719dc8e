"""A RevealProfile as the builders use it, with the defaults of the operator.

docs/reference/api-revealprofile.md describes each field.  The schema in ``crds/`` sets defaults
before the operator sees an object.  The same defaults are here, because an object that was stored
under an older schema has no newer fields; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from reveal_contract.sources import WITH_PERF_CGROUPS

Json = Mapping[str, Any]  # a part of a Kubernetes object that is passed on unchanged

GPU_TOLERATION: Json = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
# The CPU request is five times the budget that the collector keeps by itself: it is the weight of
# its cgroup.  On a saturated node, with the weight of the budget, what it uses within a tenth of a
# second makes it wait for seconds.  No CPU limit: a throttled collector would sample late when it
# matters most.  Memory: 26 MB with its C parts, 39 without, some 15 more for the API and the
# metrics.  The limit makes a leak end the collector, not the job.
COLLECTOR_RESOURCES: Json = {
    "requests": {"cpu": "100m", "memory": "64Mi"},
    "limits": {"memory": "256Mi"},
}
# One core serves 1,000 nodes, and each node takes 5 MB (docs/explanation/sizing.md): the default
# request is enough for about 50.  No limits: the number of nodes is not known here.
ANALYZER_RESOURCES: Json = {"requests": {"cpu": "250m", "memory": "512Mi"}}

# whether slices must prove from which node they come; preferred: those of a node whose others do
ORIGIN_OFF, ORIGIN_PREFERRED, ORIGIN_REQUIRED = ORIGIN_PROOFS = ("Off", "Preferred", "Required")


class Privilege(StrEnum):
    """How the collector's container gets its rights."""

    PRIVILEGED = "Privileged"
    CAPABILITIES = "Capabilities"
    RESTRICTED = "Restricted"


LOGS_FOLDER = "/var/log"  # of the host: the kubelet has the logs of pods there


class PodSource(StrEnum):
    """Where collectors know the pods of their node from."""

    API = "API"
    LOGS = "Logs"


# What ``Restricted`` withholds: by these rights a process with user 0 in the host's PID namespace
# reaches the files of the host, the memory of the kernel, and (PERFMON, since Linux 6.13) the
# environments of processes.  Their sources are left out.
WITHHELD = (
    "SYS_PTRACE", "DAC_READ_SEARCH", "BPF", "PERFMON", "seccomp", "AppArmor", "SELinux",
)  # fmt: skip
WITHHELD_SOURCES = (
    "filesystems", "ledger", "perf", "tracepoints", "pmu", "msr", "smi", "cstates", "uncore",
    *WITH_PERF_CGROUPS,
)  # fmt: skip


class Mode(StrEnum):
    """Whether findings are written to the API."""

    REPORT = "Report"
    OBSERVE = "Observe"


@dataclass(frozen=True)
class SecretKey:
    """One key of a Secret in the operator's namespace."""

    name: str
    key: str


@dataclass(frozen=True)
class RedisCredentials:
    """The Secret with the password of Redis and, if it has that key, the user name."""

    name: str
    username_key: str = "username"
    password_key: str = "password"  # noqa: S105 - the name of a key


@dataclass(frozen=True)
class RedisSpec:
    """The Redis of the slices; ``url`` has neither credentials nor options.

    Without credentials of their own, collectors have those of the analyzers.
    """

    url: str
    authority: SecretKey | None = None
    insecure_skip_verify: bool = False
    credentials: RedisCredentials | None = None
    collector_credentials: RedisCredentials | None = None


@dataclass(frozen=True)
class SourcesSpec:
    """Names of sources: only the included ones if there are any, without the excluded ones."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


@dataclass(frozen=True)
class CollectorSpec:
    """``spec.collector``; ``image`` "" is the operator's default."""

    sample_period_milliseconds: int = 100
    sources: SourcesSpec = SourcesSpec()
    privilege: Privilege = Privilege.PRIVILEGED
    cpu_budget_millicores: int = 20
    max_subjects: int = 64
    pod_source: PodSource = PodSource.API
    container_subjects: bool = False
    perf_cgroups: bool = False
    gpu_profiling: bool = False
    metrics_port: int = 0
    metrics_series: int = 0
    resources: Json = field(default_factory=lambda: COLLECTOR_RESOURCES)
    extra_host_paths: tuple[str, ...] = ()
    runtime_class_name: str = ""
    priority_class_name: str = "system-node-critical"
    image: str = ""


@dataclass(frozen=True)
class AnalyzerSpec:
    """``spec.analyzer``; ``hypotheses`` is the name of a ConfigMap."""

    replicas: int = 1
    mode: str = "Online"
    sensitivity: str = "Low"
    window_seconds: int = 3
    stride_seconds: int = 1
    warmup_seconds: int = 60
    metrics_subjects: int = 0
    origin_proof: str = ORIGIN_PREFERRED
    resources: Json = field(default_factory=lambda: ANALYZER_RESOURCES)
    hypotheses: str = ""
    image: str = ""

    @property
    def proves_origin(self) -> bool:
        """Whether collectors prove from which node their slices come."""
        return self.origin_proof != ORIGIN_OFF


@dataclass(frozen=True)
class OtlpSpec:
    """``spec.reporting.otlp``; ``headers`` is the key of a Secret with credentials."""

    endpoint: str
    headers: SecretKey | None = None


@dataclass(frozen=True)
class ReportingSpec:
    """``spec.reporting``; only the operator uses the last two."""

    min_severity: str = "Low"
    events: bool = True
    node_conditions: bool = False
    max_node_conditions_percent: int = 20
    reports_per_minute: int = 30
    gpu_hour_price: str = ""
    otlp: OtlpSpec | None = None
    ttl_seconds_after_resolved: int = 86_400
    max_reports: int = 1000


@dataclass(frozen=True)
class EvidenceSpec:
    """``spec.evidence``; ``claim_name`` is of a PersistentVolumeClaim, for the store Folder."""

    store: str = "Redis"
    claim_name: str = ""
    retention_seconds: int = 86_400
    max_bytes: int = 98_304
    history_hours: int = 0


@dataclass(frozen=True)
class Profile:
    """A whole RevealProfile; ``redis`` None is the Redis of the operator."""

    name: str
    uid: str
    generation: int = 1
    node_selector: Mapping[str, str] = field(default_factory=dict)
    node_affinity: Json = field(default_factory=dict)
    tolerations: tuple[Json, ...] = (GPU_TOLERATION,)
    paused: bool = False
    mode: Mode = Mode.REPORT
    collector: CollectorSpec = CollectorSpec()
    analyzer: AnalyzerSpec = AnalyzerSpec()
    redis: RedisSpec | None = None
    reporting: ReportingSpec = ReportingSpec()
    evidence: EvidenceSpec = EvidenceSpec()


@dataclass(frozen=True)
class ProfileLimits:
    """What profiles may name beside what the operator has by default.

    ``images`` are registries, repositories or whole references, ``host_paths`` folders and
    ``addresses`` URLs of Redis and of OpenTelemetry, all three with what is below them.  The others
    are whole names: ``claims`` of PersistentVolumeClaims, ``config_maps`` of those with causes.
    """

    images: tuple[str, ...] = ()
    host_paths: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    config_maps: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()


@dataclass(frozen=True)
class Defaults:
    """Flags of the operator that apply to every profile.

    ``redis_*`` is the Redis of profiles that name none; ``redis_url`` "" means there is none.
    ``metrics_secret`` restricts who may read the metrics of the pods; with "" everybody may.
    Without ``limits`` profiles may name anything.
    ``kubernetes_minor`` is the minor version of the API server (``/version``): 1.29 refuses fields
    that came with 1.30.
    """

    namespace: str
    collector_image: str
    analyzer_image: str
    image_pull_policy: str = "IfNotPresent"
    image_pull_secrets: tuple[str, ...] = ()
    collector_service_account: str = "reveal-collector"
    analyzer_service_account: str = "reveal-analyzer"
    metrics_secret: str = ""
    redis_url: str = ""
    redis_credentials_secret: str = ""
    redis_collector_credentials_secret: str = ""
    redis_username_key: str = "username"
    redis_password_key: str = "password"  # noqa: S105 - the name of a key
    redis_ca_secret: str = ""
    redis_ca_key: str = "ca.crt"
    redis_insecure_skip_verify: bool = False
    limits: ProfileLimits | None = None
    kubernetes_minor: int = 30

    @property
    def redis(self) -> RedisSpec | None:
        """The Redis of profiles that name none."""
        if not self.redis_url:
            return None
        authority = self.redis_ca_secret
        return RedisSpec(
            self.redis_url,
            SecretKey(authority, self.redis_ca_key) if authority else None,
            self.redis_insecure_skip_verify,
            self._credentials(self.redis_credentials_secret),
            self._credentials(self.redis_collector_credentials_secret),
        )

    def _credentials(self, secret: str) -> RedisCredentials | None:
        keys = (self.redis_username_key, self.redis_password_key)
        return RedisCredentials(secret, *keys) if secret else None
