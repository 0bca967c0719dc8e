"""A RevealProfile object of the API -> ``Profile``; what is bad in it, all at once.

The schema in ``crds/`` refuses most of this before we see it.  What it cannot know is checked
here: names of sources, whether there is any Redis; and all the rest once more, as the schema in
a cluster may be older than the operator.  Unknown fields are left alone: it may be newer, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from posixpath import normpath
from typing import Any

from reveal_contract import redis_address
from reveal_contract.fields import Fields
from reveal_contract.settings import SENSITIVITIES, SEVERITIES
from reveal_contract.sources import NAMES, WITH_PERF_CGROUPS
from reveal_operator.profile import (
    ANALYZER_RESOURCES,
    COLLECTOR_RESOURCES,
    GPU_TOLERATION,
    Analyzer,
    Collector,
    Credentials,
    Defaults,
    Mode,
    Privilege,
    Profile,
    Redis,
    Reporting,
    SecretKey,
    Sources,
)
from reveal_operator.settings import analyzer_settings, collector_settings

__all__ = ["Defaults", "Profile", "SpecError", "parse", "redis_of"]

INVALID, REDIS_MISSING = "InvalidSpec", "RedisMissing"  # reasons of SpecAccepted=False
MODES = ("Online", "Paper")
LONGEST_NAME = 52
MOST_REPLICAS = 64  # as many shares of the nodes there are
_SCHEMES = ("redis://", "rediss://")
_TLS = "rediss://"
_MOUNTED = ("/proc", "/sys")
_NO_REDIS = (
    "spec.redis: names no Redis, and the operator has none for profiles that do not: give"
    " redis.url here, or install the operator with one (--redis-url, value redis.url of the chart)"
)
# fields of the settings that stand elsewhere than in spec.collector or spec.analyzer
_REPORTING = ("minSeverity", "reportsPerMinute")
_NAME_OF_PROFILE = "profile"


class SpecError(ValueError):
    """The profile cannot be carried out before its author changes it.

    ``problems`` is a sentence a bad field, ``reason`` the one of condition ``SpecAccepted``.
    """

    def __init__(self, problems: Sequence[str], reason: str = INVALID) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)
        self.reason = reason


def parse(obj: Mapping[str, Any], defaults: Defaults | None = None) -> Profile:
    """The profile; raises ``SpecError`` that lists every bad field.

    With ``defaults`` also where neither they nor the profile name a Redis.
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
    )
    problems += _of_settings(profile)
    if problems:
        raise SpecError(list(dict.fromkeys(problems)))
    if defaults is not None:
        redis_of(profile, defaults)
    return profile


def redis_of(profile: Profile, defaults: Defaults) -> Redis:
    """The profile's Redis, else the operator's; raises ``SpecError`` where there is neither."""
    redis = profile.redis or defaults.redis
    if redis is None:
        raise SpecError([_NO_REDIS], REDIS_MISSING)
    return redis


def _name(meta: Fields) -> str:
    name = meta.required("name")
    if len(name) > LONGEST_NAME:
        meta.refuse("name", f"must be of at most {LONGEST_NAME} characters, not {len(name)}")
    return name


def _labels(spec: Fields) -> Mapping[str, str]:
    labels = spec.mapping("nodeSelector")
    if not all(isinstance(value, str) for value in labels.values()):
        spec.refuse("nodeSelector", "values must be strings: put numbers and true in quotes")
        return {}
    return labels


def _collector(given: Fields) -> Collector:
    usual = Collector()
    perf_cgroups = given.boolean("perfCgroups", usual.perf_cgroups)
    image = given.string("image")
    sources = _sources(given.object("sources"), perf_cgroups, of_the_house=not image)
    privilege = given.string("privilege", usual.privilege, tuple(Privilege))
    return Collector(
        sample_period_milliseconds=given.integer(
            "samplePeriodMilliseconds", usual.sample_period_milliseconds
        ),
        sources=sources,
        privilege=Privilege(privilege),
        cpu_budget_millicores=given.integer("cpuBudgetMillicores", usual.cpu_budget_millicores),
        max_subjects=given.integer("maxSubjects", usual.max_subjects),
        container_subjects=given.boolean("containerSubjects", usual.container_subjects),
        perf_cgroups=perf_cgroups,
        gpu_profiling=given.boolean("gpuProfiling", usual.gpu_profiling),
        metrics_port=given.integer("metricsPort", usual.metrics_port),
        metrics_series=given.integer("metricsSeries", usual.metrics_series),
        resources=given.mapping("resources", COLLECTOR_RESOURCES),
        extra_host_paths=_host_paths(given),
        runtime_class_name=given.string("runtimeClassName"),
        priority_class_name=given.string("priorityClassName", usual.priority_class_name),
        image=image,
    )


def _sources(given: Fields, perf_cgroups: bool, of_the_house: bool) -> Sources:
    """Which to read.  An image of a site's own may have sources that nobody here knows."""
    include, exclude = given.strings("include"), given.strings("exclude")
    for name, listed in (("include", include), ("exclude", exclude)):
        unknown = [source for source in listed if source not in NAMES]
        if unknown and of_the_house:
            given.refuse(name, f"no such source: {', '.join(unknown)}; known are {_known()}")
        absent = [source for source in listed if source in WITH_PERF_CGROUPS]
        if absent and not perf_cgroups:
            given.refuse(name, f"{', '.join(absent)} is read with collector.perfCgroups only")
    if both := sorted(set(include) & set(exclude)):
        given.refuse("exclude", f"{', '.join(both)} stands in include too: take it out of one")
    return Sources(include, exclude)


def _known() -> str:
    return ", ".join(sorted(NAMES))


def _host_paths(given: Fields) -> tuple[str, ...]:
    paths = []
    for at, item in enumerate(given.mappings("extraHostPaths")):
        place = Fields(item, f"{given.path}.extraHostPaths[{at}]", given.problems)
        path = place.required("path")
        if not path:
            continue
        if not path.startswith("/") or ":" in path or path == "/" or normpath(path) != path:
            place.refuse("path", f"must be an absolute path in its shortest form, not {path!r}")
        elif path.startswith(tuple(f"{folder}/" for folder in _MOUNTED)) or path in _MOUNTED:
            place.refuse("path", f"{path} is below /host already: leave it out")
        elif path in paths:
            place.refuse("path", f"{path} is named twice")
        else:
            paths.append(path)
    return tuple(paths)


def _analyzer(given: Fields) -> Analyzer:
    usual = Analyzer()
    hypotheses = ""
    if given.has("hypothesesConfigMapRef"):
        hypotheses = given.object("hypothesesConfigMapRef").required("name")
    return Analyzer(
        replicas=given.integer("replicas", usual.replicas, 1, MOST_REPLICAS),
        mode=given.string("mode", usual.mode, MODES),
        sensitivity=given.string("sensitivity", usual.sensitivity, SENSITIVITIES),
        window_seconds=given.integer("windowSeconds", usual.window_seconds),
        stride_seconds=given.integer("strideSeconds", usual.stride_seconds),
        warmup_seconds=given.integer("warmupSeconds", usual.warmup_seconds),
        resources=given.mapping("resources", ANALYZER_RESOURCES),
        hypotheses=hypotheses,
        image=given.string("image"),
    )


def _redis(given: Fields) -> Redis:
    url = given.required("url")
    if sentence := _bad_url(url):
        given.refuse("url", sentence)
    tls = given.object("tls")
    if given.has("tls") and url and not url.startswith(_TLS):
        given.refuse("tls", f"has no effect unless redis.url begins with {_TLS}")
    secret = None
    if given.has("credentialsSecretRef"):
        named = given.object("credentialsSecretRef")
        secret = Credentials(
            named.required("name"),
            named.string("usernameKey", Credentials.username_key),
            named.string("passwordKey", Credentials.password_key),
        )
    authority = None
    if tls.has("caSecretRef"):
        named = tls.object("caSecretRef")
        authority = SecretKey(named.required("name"), named.string("key", "ca.crt"))
    return Redis(url, authority, tls.boolean("insecureSkipVerify", default=False), secret)


def _bad_url(url: str) -> str:
    """What is wrong with it; whoever reads profiles would read a password in it."""
    if not url:
        return ""  # said already
    if "@" in url:
        return "must hold no user or password: name a Secret in redis.credentialsSecretRef"
    if "?" in url or "#" in url:
        return "must hold no options: TLS is set in redis.tls, and there are no others"
    if not url.startswith(_SCHEMES):
        return f"must begin with {' or '.join(_SCHEMES)}"
    return redis_address.problem(url)


def _reporting(given: Fields) -> Reporting:
    usual = Reporting()
    return Reporting(
        min_severity=given.string("minSeverity", usual.min_severity, SEVERITIES),
        events=given.boolean("events", usual.events),
        node_conditions=given.boolean("nodeConditions", usual.node_conditions),
        reports_per_minute=given.integer("reportsPerMinute", usual.reports_per_minute),
        ttl_seconds_after_resolved=given.integer(
            "ttlSecondsAfterResolved", usual.ttl_seconds_after_resolved, 0
        ),
        max_reports=given.integer("maxReports", usual.max_reports, 1),
    )


def _of_settings(profile: Profile) -> list[str]:
    """What collector and analyzer would refuse, under the paths of the profile."""
    collector = collector_settings(profile, "node", "").problems()
    analyzer = analyzer_settings(profile, "").problems()
    return [_placed("spec.collector", said) for said in collector] + [
        _placed("spec.reporting" if said.startswith(_REPORTING) else "spec.analyzer", said)
        for said in analyzer
    ]


def _placed(path: str, sentence: str) -> str:
    if sentence.startswith(f"{_NAME_OF_PROFILE}:"):
        return f"metadata.name:{sentence.partition(':')[2]}"
    return f"{path}.{sentence}"
