"""A RevealProfile as the builders take it, and what the operator fills in where it is silent.

What a field means and its default: docs/reference/api.md and the schema in ``crds/``, which fills
them in before we see an object.  The same defaults stand here, because an object stored under an
older schema has no newer fields; a test holds the two equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

Json = Mapping[str, Any]  # a part of a Kubernetes object that goes through as it is

GPU_TOLERATION: Json = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
# The CPU asked for is the budget the collector keeps by itself.  No limit: throttled, it would tick
# late, and that when it matters most.  Memory: 26 MB with its C parts, 39 without, some 15 more for
# the API and the metrics; a limit, so that a leak ends us and not the job.
COLLECTOR_RESOURCES: Json = {
    "requests": {"cpu": "20m", "memory": "64Mi"},
    "limits": {"memory": "256Mi"},
}
# Plan a core for each 1,000 nodes and 5 MB for each node (docs/explanation/sizing.md): the default
# request is enough for about 50.  No limits, as the number of nodes is not known here.
ANALYZER_RESOURCES: Json = {"requests": {"cpu": "250m", "memory": "512Mi"}}


class Privilege(StrEnum):
    """How the collector's container gets its rights."""

    PRIVILEGED = "Privileged"
    CAPABILITIES = "Capabilities"


class Mode(StrEnum):
    """Whether what is found is written to the API."""

    REPORT = "Report"
    OBSERVE = "Observe"


@dataclass(frozen=True)
class SecretKey:
    """One key of a Secret in the operator's namespace."""

    name: str
    key: str


@dataclass(frozen=True)
class Credentials:
    """The Secret with Redis' password and, where its key is there, the user."""

    name: str
    username_key: str = "username"
    password_key: str = "password"  # noqa: S105 - the name of a key


@dataclass(frozen=True)
class Redis:
    """Where the slices go; ``url`` holds neither credentials nor options."""

    url: str
    authority: SecretKey | None = None
    insecure_skip_verify: bool = False
    credentials: Credentials | None = None


@dataclass(frozen=True)
class Sources:
    """Names of sources: only these where there are any, without those."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


@dataclass(frozen=True)
class Collector:
    """``spec.collector``; ``image`` "" is the operator's."""

    sample_period_milliseconds: int = 100
    sources: Sources = Sources()
    privilege: Privilege = Privilege.PRIVILEGED
    cpu_budget_millicores: int = 20
    max_subjects: int = 64
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
class Analyzer:
    """``spec.analyzer``; ``hypotheses`` is the name of a ConfigMap."""

    replicas: int = 1
    mode: str = "Online"
    sensitivity: str = "Low"
    window_seconds: int = 3
    stride_seconds: int = 1
    warmup_seconds: int = 60
    resources: Json = field(default_factory=lambda: ANALYZER_RESOURCES)
    hypotheses: str = ""
    image: str = ""


@dataclass(frozen=True)
class Reporting:
    """``spec.reporting``; the last two are the operator's own business."""

    min_severity: str = "Low"
    events: bool = True
    node_conditions: bool = False
    reports_per_minute: int = 30
    ttl_seconds_after_resolved: int = 86_400
    max_reports: int = 1000


@dataclass(frozen=True)
class Profile:
    """A whole RevealProfile; ``redis`` is None where it leaves that to the operator."""

    name: str
    uid: str
    generation: int = 1
    node_selector: Mapping[str, str] = field(default_factory=dict)
    node_affinity: Json = field(default_factory=dict)
    tolerations: tuple[Json, ...] = (GPU_TOLERATION,)
    paused: bool = False
    mode: Mode = Mode.REPORT
    collector: Collector = Collector()
    analyzer: Analyzer = Analyzer()
    redis: Redis | None = None
    reporting: Reporting = Reporting()


@dataclass(frozen=True)
class Defaults:
    """What the operator was told at its start, for every profile.

    ``redis_*`` is the Redis of profiles that name none; ``redis_url`` "" means there is none.
    ``kubernetes_minor`` is the API server's (``/version``): of 1.29 it has to be said, as that
    one refuses fields that came with 1.30.
    """

    namespace: str
    collector_image: str
    analyzer_image: str
    image_pull_policy: str = "IfNotPresent"
    image_pull_secrets: tuple[str, ...] = ()
    collector_service_account: str = "reveal-collector"
    analyzer_service_account: str = "reveal-analyzer"
    redis_url: str = ""
    redis_credentials_secret: str = ""
    redis_username_key: str = "username"
    redis_password_key: str = "password"  # noqa: S105 - the name of a key
    redis_ca_secret: str = ""
    redis_ca_key: str = "ca.crt"
    redis_insecure_skip_verify: bool = False
    kubernetes_minor: int = 30

    @property
    def redis(self) -> Redis | None:
        """The Redis of profiles that name none."""
        if not self.redis_url:
            return None
        secret, authority = self.redis_credentials_secret, self.redis_ca_secret
        keys = (self.redis_username_key, self.redis_password_key)
        return Redis(
            self.redis_url,
            SecretKey(authority, self.redis_ca_key) if authority else None,
            self.redis_insecure_skip_verify,
            Credentials(secret, *keys) if secret else None,
        )
