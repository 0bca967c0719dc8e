"""Profiles and defaults as tests of the operator's builders take them, and any profile there is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from hypothesis import strategies as st

from reveal_contract.settings import SENSITIVITIES, SEVERITIES
from reveal_contract.sources import ALWAYS, NAMES
from reveal_operator.manifests import owned_manifests
from reveal_operator.profile import WITHHELD_SOURCES
from reveal_operator.spec import Defaults, parse

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tests/fixtures/manifests"
DEFAULTS = Defaults(
    namespace="reveal-system",
    collector_image="reveal-collector:1.0.0",
    analyzer_image="reveal-analyzer:1.0.0",
    image_pull_secrets=("registry-login",),
    redis_url="redis://reveal-redis.reveal-system:6379/0",
    redis_credentials_secret="reveal-redis",
)
CLAIM = {"store": "Folder", "claimName": "samples"}  # of evidence
PROFILES = {
    path.name.partition(".")[0]: yaml.safe_load(path.read_text())
    for path in sorted(FOLDER.glob("*.profile.yaml"))
}


def profile(spec: dict[str, Any] | None = None, name: str = "p") -> dict[str, Any]:
    """A RevealProfile with this spec, as the API server has it."""
    return {
        "apiVersion": "reveal.dev/v1alpha1",
        "kind": "RevealProfile",
        "metadata": {"name": name, "uid": "0b5e8d2e-1111-4222-8333-444455556666", "generation": 1},
        "spec": spec or {},
    }


def built(spec: dict[str, Any] | None = None, **defaults: Any) -> dict[str, dict[str, Any]]:
    """The children of such a profile by kind."""
    chosen = Defaults(**{**vars(DEFAULTS), **defaults})
    return {
        manifest["kind"]: manifest
        for manifest in owned_manifests(parse(profile(spec), chosen), chosen)
    }


def container(child: dict[str, Any]) -> dict[str, Any]:
    """The one container of a workload's pods."""
    (only,) = child["spec"]["template"]["spec"]["containers"]
    return dict(only)


_PART = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True)
NAMES_OF_PROFILES = (
    st.lists(_PART, min_size=1, max_size=6).map(".".join).filter(lambda name: len(name) <= 52)
)


def _amounts(cpu: list[str], memory: list[str]) -> st.SearchStrategy[dict[str, str]]:
    each = {"cpu": st.sampled_from(cpu), "memory": st.sampled_from(memory)}
    return st.fixed_dictionaries({}, optional=each)


_RESOURCES = st.fixed_dictionaries(
    {},
    optional={
        "requests": _amounts(["20m", "0.5"], ["64Mi", "100M"]),
        "limits": _amounts(["1", "2"], ["1Gi", "4G"]),
    },
)


@st.composite
def _sources(draw: st.DrawFn) -> dict[str, list[str]]:
    chosen = draw(st.lists(st.sampled_from(ALWAYS), unique=True, max_size=12))
    split = draw(st.integers(0, len(chosen)))
    return {"include": chosen[:split], "exclude": chosen[split:]}


def _valid(collector: dict[str, Any]) -> dict[str, Any]:
    """Return a part of a spec with what its fields need, and without what they exclude."""
    found = {**collector, "metricsSeries": 900} if collector.get("metricsPort") else collector
    if found.get("privilege") == "Restricted" and "sources" in found:
        sources = found["sources"]
        include = [name for name in sources["include"] if name not in WITHHELD_SOURCES]
        return {**found, "sources": {**sources, "include": include}}
    return found


_COLLECTOR = st.fixed_dictionaries(
    {},
    optional={
        "samplePeriodMilliseconds": st.sampled_from([20, 25, 50, 100, 125, 200, 250, 500, 1000]),
        "sources": _sources(),
        "privilege": st.sampled_from(["Privileged", "Capabilities", "Restricted"]),
        "cpuBudgetMillicores": st.integers(1, 1000),
        "maxSubjects": st.integers(0, 1024),
        "podSource": st.sampled_from(["API", "Logs"]),
        "containerSubjects": st.booleans(),
        "perfCgroups": st.booleans(),
        "gpuProfiling": st.booleans(),
        "metricsPort": st.integers(0, 65_535),
        "resources": _RESOURCES,
        "extraHostPaths": st.lists(
            st.sampled_from(["/dev/shm", "/run/lustre", "/var/lib/x"]), unique=True
        ).map(lambda paths: [{"path": path} for path in paths]),
        "runtimeClassName": st.just("nvidia"),
        "priorityClassName": st.sampled_from(["", "high"]),
        "image": st.just("registry.example.com/c@sha256:" + "0" * 64),
    },
).map(_valid)
_ANALYZER = st.fixed_dictionaries(
    {},
    optional={
        "replicas": st.integers(1, 64),
        "mode": st.sampled_from(["Online", "Paper"]),
        "sensitivity": st.sampled_from(SENSITIVITIES),
        "windowSeconds": st.integers(3, 60),
        "strideSeconds": st.integers(1, 3),
        "warmupSeconds": st.integers(10, 3600),
        "metricsSubjects": st.integers(0, 32),
        "originProof": st.sampled_from(["Off", "Preferred", "Required"]),
        "resources": _RESOURCES,
        "hypothesesConfigMapRef": st.just({"name": "causes"}),
    },
)
_REDIS = st.fixed_dictionaries(
    {"url": st.just("rediss://redis.example.com:6380/1")},
    optional={
        "tls": st.sampled_from([{"caSecretRef": {"name": "ca"}}, {"insecureSkipVerify": True}]),
        "credentialsSecretRef": st.just({"name": "login"}),
        "collectorCredentialsSecretRef": st.just({"name": "collectors"}),
    },
)
_REPORTING = st.fixed_dictionaries(
    {},
    optional={
        "minSeverity": st.sampled_from(SEVERITIES),
        "events": st.booleans(),
        "nodeConditions": st.booleans(),
        "maxNodeConditionsPercent": st.integers(1, 100),
        "reportsPerMinute": st.integers(1, 600),
        "gpuHourPrice": st.sampled_from(["0", "2.50", "1234567.1234 USD"]),
        "ttlSecondsAfterResolved": st.integers(0, 100_000),
        "maxReports": st.integers(1, 10_000),
        "otlp": st.sampled_from(
            [
                {"endpoint": "http://otel:4318"},
                {"endpoint": "https://otel/base", "headersSecretRef": {"name": "otel", "key": "h"}},
            ]
        ),
    },
)
_EVIDENCE = st.sampled_from([{"store": "None"}, CLAIM, {}]).flatmap(
    lambda chosen: st.fixed_dictionaries(
        {key: st.just(value) for key, value in chosen.items()},
        optional={
            "retentionSeconds": st.integers(600, 100_000),
            "maxBytes": st.integers(16_384, 200_000),
        },
    )
)
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "nodeSelector": st.dictionaries(st.sampled_from(["a", "b"]), st.just("x")),
        "nodeAffinity": st.just(
            {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "gpus", "operator": "Gt", "values": ["3"]}]}
                    ]
                }
            }
        ),
        "tolerations": st.lists(st.just({"operator": "Exists"}), max_size=1),
        "paused": st.booleans(),
        "mode": st.sampled_from(["Report", "Observe"]),
        "collector": _COLLECTOR,
        "analyzer": _ANALYZER,
        "redis": _REDIS,
        "reporting": _REPORTING,
        "evidence": _EVIDENCE,
    },
)
ANY_SOURCES = st.lists(st.sampled_from(NAMES), unique=True)
