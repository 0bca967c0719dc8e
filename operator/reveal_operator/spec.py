"""Reads a RevealProfile object of the API; reports all its errors at once.

The schema in ``crds/`` refuses most errors before the operator sees an object.  What a schema
cannot check is checked here: names of sources, and whether there is a Redis.  All the rest is
checked again, as the schema in a cluster may be older than the operator.  It may also be newer, so
unknown fields are ignored.

docs/contributing/add-a-crd-field.md lists all places of a field.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from posixpath import normpath
from typing import Any

from reveal_contract import redis_address
from reveal_contract.fields import Fields
from reveal_contract.settings import SENSITIVITIES, SEVERITIES
from reveal_contract.sources import NAMES, WITH_PERF_CGROUPS
from reveal_operator.limits import refusals
from reveal_operator.profile import (
    ANALYZER_RESOURCES,
    COLLECTOR_RESOURCES,
    GPU_TOLERATION,
    ORIGIN_OFF,
    ORIGIN_PROOFS,
    ORIGIN_REQUIRED,
    WITHHELD_SOURCES,
    AnalyzerSpec,
    CollectorSpec,
    Defaults,
    EvidenceSpec,
    Mode,
    OtlpSpec,
    PodSource,
    Privilege,
    Profile,
    RedisCredentials,
    RedisSpec,
    ReportingSpec,
    SecretKey,
    SourcesSpec,
)
from reveal_operator.settings import analyzer_settings, collector_settings

__all__ = ["Defaults", "Profile", "SpecError", "parse", "redis_of"]

# reasons of SpecAccepted=False
INVALID, REDIS_MISSING, NOT_PERMITTED = "InvalidSpec", "RedisMissing", "NotPermitted"
MODES = ("Online", "Paper")
EVIDENCE_STORES = ("None", "Redis", "Folder")
NODE_IN_TOKENS_MINOR = 30  # API servers say from there on of which node a token is
LONGEST_NAME = 52
MOST_REPLICAS = 64  # there are so many shards of nodes
_SCHEMES = tuple(each for each in redis_address.SCHEMES if each != "unix://")
_MOUNTED = ("/proc", "/sys")
_NO_REDIS = (
    "spec.redis: is required, as the operator has no default Redis: set spec.redis.url, or install"
    " the operator with a default (flag --redis-url, value redis.url of the chart)"
)
# settings whose fields are in spec.reporting and not in spec.analyzer
_REPORTING = ("minSeverity", "reportsPerMinute", "maxNodeConditionsPercent", "gpuHourPrice")
_OTLP_ENDPOINT = "otlpEndpoint"
_EVIDENCE = "evidence"  # what the names of the settings of spec.evidence begin with
_NAME_OF_PROFILE = "profile"


class SpecError(ValueError):
    """The author of the profile must change it first.

    ``problems`` has a sentence for each bad field, ``reason`` is for the condition
    ``SpecAccepted``.
    """

    def __init__(self, problems: Sequence[str], reason: str = INVALID) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)
        self.reason = reason


def parse(obj: Mapping[str, Any], defaults: Defaults | None = None) -> Profile:
    """Return the profile; raises a ``SpecError`` that lists every bad field.

    With ``defaults`` it is also raised where neither they nor the profile name a Redis, and for
    what their limits do not permit.
    """
    problems: list[str] = []
    meta = Fields(obj.get("metadata"), "metadata", problems)
    spec = Fields(obj.get("spec"), "spec", problems)
    profile = Profile(
        name=_name(meta),
        uid=meta.string("uid"),
        generation=meta.integer("generation", 1),
        node_selector=_labels(spec),
        node_affinity=spec.mapping("nodeAffinity"),
        tolerations=spec.mappings("tolerations", (GPU_TOLERATION,)),
        paused=spec.boolean("paused", default=False),
        mode=Mode(spec.string("mode", Mode.REPORT, tuple(Mode))),
        collector=_collector(spec.object("collector")),
        analyzer=_analyzer(spec.object("analyzer")),
        redis=_redis(spec.object("redis")) if spec.has("redis") else None,
        reporting=_reporting(spec.object("reporting")),
        evidence=_evidence(spec.object("evidence")),
    )
    problems += _of_settings(profile)
    if problems:
        raise SpecError(list(dict.fromkeys(problems)))
    if defaults is None:
        return profile
    _check(profile, defaults)
    return _supported(profile, defaults.kubernetes_minor)


def _check(profile: Profile, defaults: Defaults) -> None:
    """Raise ``SpecError`` for what the flags of the operator do not permit, or lack."""
    if defaults.limits is not None and (refused := refusals(profile, defaults.limits)):
        raise SpecError(refused, NOT_PERMITTED)
    redis_of(profile, defaults)


def _supported(profile: Profile, minor: int) -> Profile:
    """Return the profile without what the API server cannot do; raises ``SpecError``."""
    if minor >= NODE_IN_TOKENS_MINOR or not profile.analyzer.proves_origin:
        return profile
    if profile.analyzer.origin_proof == ORIGIN_REQUIRED:
        needed = f"Kubernetes 1.{NODE_IN_TOKENS_MINOR} or newer"
        raise SpecError([f"spec.analyzer.originProof: Required needs {needed}"])
    return replace(profile, analyzer=replace(profile.analyzer, origin_proof=ORIGIN_OFF))


def redis_of(profile: Profile, defaults: Defaults) -> RedisSpec:
    """Return the profile's Redis, else the operator's; raises ``SpecError`` without both."""
    redis = profile.redis or defaults.redis
    if redis is None:
        raise SpecError([_NO_REDIS], REDIS_MISSING)
    return redis


def _name(meta: Fields) -> str:
    name = meta.required("name")
    if len(name) > LONGEST_NAME:
        meta.refuse("name", f"must have at most {LONGEST_NAME} characters, not {len(name)}")
    return name


def _labels(spec: Fields) -> Mapping[str, str]:
    labels = spec.mapping("nodeSelector")
    if not all(isinstance(value, str) for value in labels.values()):
        spec.refuse("nodeSelector", "values must be strings: put numbers and true in quotes")
        return {}
    return labels


def _collector(given: Fields) -> CollectorSpec:
    default = CollectorSpec()
    perf_cgroups = given.boolean("perfCgroups", default.perf_cgroups)
    image = given.string("image")
    sources = _sources(given.object("sources"), perf_cgroups, default_image=not image)
    privilege = Privilege(given.string("privilege", default.privilege, tuple(Privilege)))
    if privilege is Privilege.RESTRICTED:
        _check_withheld(given.object("sources"), sources)
    return CollectorSpec(
        sample_period_milliseconds=given.integer(
            "samplePeriodMilliseconds", default.sample_period_milliseconds
        ),
        sources=sources,
        privilege=privilege,
        cpu_budget_millicores=given.integer("cpuBudgetMillicores", default.cpu_budget_millicores),
        max_subjects=given.integer("maxSubjects", default.max_subjects),
        pod_source=PodSource(given.string("podSource", default.pod_source, tuple(PodSource))),
        container_subjects=given.boolean("containerSubjects", default.container_subjects),
        perf_cgroups=perf_cgroups,
        gpu_profiling=given.boolean("gpuProfiling", default.gpu_profiling),
        metrics_port=given.integer("metricsPort", default.metrics_port),
        metrics_series=given.integer("metricsSeries", default.metrics_series),
        resources=given.mapping("resources", COLLECTOR_RESOURCES),
        extra_host_paths=_host_paths(given),
        runtime_class_name=given.string("runtimeClassName"),
        priority_class_name=given.string("priorityClassName", default.priority_class_name),
        image=image,
    )


def _sources(given: Fields, perf_cgroups: bool, default_image: bool) -> SourcesSpec:
    """Return which sources to read; another image may have sources that are not known here."""
    include, exclude = given.strings("include"), given.strings("exclude")
    for name, listed in (("include", include), ("exclude", exclude)):
        unknown = [source for source in listed if source not in NAMES]
        if unknown and default_image:
            given.refuse(name, f"no such source: {', '.join(unknown)}; known are {_known()}")
        absent = [source for source in listed if source in WITH_PERF_CGROUPS]
        if absent and not perf_cgroups:
            given.refuse(name, f"{', '.join(absent)} needs collector.perfCgroups: true")
    if both := sorted(set(include) & set(exclude)):
        given.refuse("exclude", f"{', '.join(both)} is in include, too: remove it from one of them")
    return SourcesSpec(include, exclude)


def _check_withheld(given: Fields, sources: SourcesSpec) -> None:
    """Refuse sources that are asked for by name and need rights that are withheld."""
    if withheld := [name for name in sources.include if name in WITHHELD_SOURCES]:
        given.refuse(
            "include", f"{', '.join(withheld)} needs collector.privilege Capabilities or Privileged"
        )


def _known() -> str:
    return ", ".join(sorted(NAMES))


def _host_paths(given: Fields) -> tuple[str, ...]:
    paths = []
    for index, item in enumerate(given.mappings("extraHostPaths")):
        entry = Fields(item, f"{given.path}.extraHostPaths[{index}]", given.problems)
        path = entry.required("path")
        if not path:
            continue
        if not path.startswith("/") or ":" in path or path == "/" or normpath(path) != path:
            entry.refuse("path", f"must be an absolute path in its shortest form, not {path!r}")
        elif path.startswith(tuple(f"{folder}/" for folder in _MOUNTED)) or path in _MOUNTED:
            entry.refuse("path", f"{path} is mounted below /host already: remove it")
        elif path in paths:
            entry.refuse("path", f"{path} is listed twice")
        else:
            paths.append(path)
    return tuple(paths)


def _analyzer(given: Fields) -> AnalyzerSpec:
    default = AnalyzerSpec()
    hypotheses = ""
    if given.has("hypothesesConfigMapRef"):
        hypotheses = given.object("hypothesesConfigMapRef").required("name")
    return AnalyzerSpec(
        replicas=given.integer("replicas", default.replicas, 1, MOST_REPLICAS),
        mode=given.string("mode", default.mode, MODES),
        sensitivity=given.string("sensitivity", default.sensitivity, SENSITIVITIES),
        window_seconds=given.integer("windowSeconds", default.window_seconds),
        stride_seconds=given.integer("strideSeconds", default.stride_seconds),
        warmup_seconds=given.integer("warmupSeconds", default.warmup_seconds),
        metrics_subjects=given.integer("metricsSubjects", default.metrics_subjects),
        origin_proof=given.string("originProof", default.origin_proof, ORIGIN_PROOFS),
        resources=given.mapping("resources", ANALYZER_RESOURCES),
        hypotheses=hypotheses,
        image=given.string("image"),
    )


def _redis(given: Fields) -> RedisSpec:
    url = given.required("url")
    if sentence := _bad_url(url):
        given.refuse("url", sentence)
    tls = given.object("tls")
    if given.has("tls") and url and not redis_address.is_tls(url):
        schemes = " or ".join(redis_address.TLS_SCHEMES)
        given.refuse("tls", f"has no effect unless redis.url begins with {schemes}")
    authority = None
    if tls.has("caSecretRef"):
        named = tls.object("caSecretRef")
        authority = SecretKey(named.required("name"), named.string("key", "ca.crt"))
    return RedisSpec(
        url,
        authority,
        tls.boolean("insecureSkipVerify", default=False),
        _redis_credentials(given, "credentialsSecretRef"),
        _redis_credentials(given, "collectorCredentialsSecretRef"),
    )


def _redis_credentials(given: Fields, field: str) -> RedisCredentials | None:
    if not given.has(field):
        return None
    named = given.object(field)
    return RedisCredentials(
        named.required("name"),
        named.string("usernameKey", RedisCredentials.username_key),
        named.string("passwordKey", RedisCredentials.password_key),
    )


def _bad_url(url: str) -> str:
    """Return what is wrong with it; everybody who can read profiles could read a password."""
    if not url:
        return ""  # reported as missing
    if "@" in url:
        return "must not contain a user or password: name a Secret in redis.credentialsSecretRef"
    if "?" in url or "#" in url:
        return "must not contain options: set TLS in redis.tls; there are no others"
    if not url.startswith(_SCHEMES):
        return f"must begin with {' or '.join(_SCHEMES)}"
    return redis_address.problem(url)


def _reporting(given: Fields) -> ReportingSpec:
    default = ReportingSpec()
    return ReportingSpec(
        min_severity=given.string("minSeverity", default.min_severity, SEVERITIES),
        events=given.boolean("events", default.events),
        node_conditions=given.boolean("nodeConditions", default.node_conditions),
        max_node_conditions_percent=given.integer(
            "maxNodeConditionsPercent", default.max_node_conditions_percent
        ),
        reports_per_minute=given.integer("reportsPerMinute", default.reports_per_minute),
        gpu_hour_price=given.string("gpuHourPrice", default.gpu_hour_price),
        otlp=_otlp(given),
        ttl_seconds_after_resolved=given.integer(
            "ttlSecondsAfterResolved", default.ttl_seconds_after_resolved, 0
        ),
        max_reports=given.integer("maxReports", default.max_reports, 1),
    )


def _otlp(given: Fields) -> OtlpSpec | None:
    if not given.has("otlp"):
        return None
    otlp, headers = given.object("otlp"), None
    if otlp.has("headersSecretRef"):
        named = otlp.object("headersSecretRef")
        headers = SecretKey(named.required("name"), named.string("key", "headers"))
    return OtlpSpec(otlp.required("endpoint"), headers)


def _evidence(given: Fields) -> EvidenceSpec:
    default = EvidenceSpec()
    store = given.string("store", default.store, EVIDENCE_STORES)
    claim = given.string("claimName")
    if (store == "Folder") != bool(claim):
        given.refuse("claimName", "is required with store Folder, and allowed only with it")
        claim = claim if store == "Folder" else ""
    return EvidenceSpec(
        store=store if claim or store != "Folder" else default.store,
        claim_name=claim,
        retention_seconds=given.integer("retentionSeconds", default.retention_seconds),
        max_bytes=given.integer("maxBytes", default.max_bytes),
        history_hours=given.integer("historyHours", default.history_hours),
    )


def _of_settings(profile: Profile) -> list[str]:
    """Return what collector and analyzer would refuse, with the paths of the profile."""
    collector = collector_settings(profile, "node", "").problems()
    analyzer = analyzer_settings(profile, "").problems()
    return [_with_path("spec.collector", problem) for problem in collector] + [
        _of_analyzer(problem) for problem in analyzer
    ]


def _of_analyzer(problem: str) -> str:
    """Return a problem of an analyzer's setting with the path of the profile."""
    if problem.startswith(_EVIDENCE):
        name = problem.removeprefix(_EVIDENCE)
        return f"spec.evidence.{name[:1].lower()}{name[1:]}"
    if problem.startswith(_OTLP_ENDPOINT):
        return f"spec.reporting.otlp.endpoint{problem.removeprefix(_OTLP_ENDPOINT)}"
    is_reporting = problem.startswith(_REPORTING)
    return _with_path("spec.reporting" if is_reporting else "spec.analyzer", problem)


def _with_path(path: str, sentence: str) -> str:
    if sentence.startswith(f"{_NAME_OF_PROFILE}:"):
        return f"metadata.name:{sentence.partition(':')[2]}"
    return f"{path}.{sentence}"
