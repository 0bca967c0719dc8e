"""Profiles as the API returns them: accepted and refused values, and the messages of refusals."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from reveal_contract.settings import CollectorSettings
from reveal_contract.sources import ALWAYS, NAMES, WITH_PERF_CGROUPS
from reveal_operator.profile import OtlpSpec, Profile, RedisCredentials, SecretKey
from reveal_operator.spec import Defaults, SpecError, parse, redis_of
from support.profile_factory import DEFAULTS, ROOT, SPECS, profile
from support.property_tests import examples

CRD = ROOT / "crds/reveal.dev_revealprofiles.yaml"


def refused(spec: Any, name: str = "p") -> SpecError:
    with pytest.raises(SpecError) as caught:
        parse({**profile(name=name), "spec": spec})
    return caught.value


def test_headers_for_a_receiver_are_a_key_of_a_secret() -> None:
    given = {"endpoint": "https://otel:4318/base", "headersSecretRef": {"name": "otel"}}
    otlp = parse(profile({"reporting": {"otlp": given}})).reporting.otlp
    assert otlp == OtlpSpec("https://otel:4318/base", SecretKey("otel", "headers"))
    named = {**given, "headersSecretRef": {"name": "otel", "key": "h"}}
    otlp = parse(profile({"reporting": {"otlp": named}})).reporting.otlp
    assert otlp == OtlpSpec("https://otel:4318/base", SecretKey("otel", "h"))


@pytest.mark.parametrize(
    "endpoint", ["otel:4318", "http://", "http://u:p@otel", "http://o?q", "http://a b"]
)
def test_an_endpoint_is_an_address_without_credentials(endpoint: str) -> None:
    [problem] = refused({"reporting": {"otlp": {"endpoint": endpoint}}}).problems
    assert problem.startswith("spec.reporting.otlp.endpoint: must be http:// or https://")


def test_an_empty_spec_is_a_whole_profile() -> None:
    parsed = parse(profile())
    assert parsed == Profile("p", "0b5e8d2e-1111-4222-8333-444455556666")
    assert parse({**profile(), "spec": None}) == parsed


@cache
def schema() -> dict[str, Any]:
    (version,) = yaml.safe_load(CRD.read_text())["spec"]["versions"]
    found: dict[str, Any] = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return found


def defaulted(value: Any, known: Mapping[str, Any]) -> Any:
    """Apply the defaults of the schema as the API server does: outer objects first."""
    if isinstance(value, dict):
        properties = known.get("properties", {})
        filled = {
            name: value.get(name, each.get("default"))
            for name, each in properties.items()
            if name in value or "default" in each
        }
        return {**value, **{name: defaulted(filled[name], properties[name]) for name in filled}}
    if isinstance(value, list):
        return [defaulted(item, known.get("items", {})) for item in value]
    return value


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"collector": {"sources": {}}, "analyzer": {}, "reporting": {}},
        {"redis": {"url": "redis://r", "credentialsSecretRef": {"name": "s"}}},
        {"redis": {"url": "rediss://r", "tls": {"caSecretRef": {"name": "s"}}}},
    ],
)
def test_the_schema_and_the_parser_have_the_same_defaults(spec: dict[str, Any]) -> None:
    filled = defaulted(spec, schema())
    assert filled != spec
    assert parse(profile(filled)) == parse(profile(spec))


@given(SPECS)
@examples(60)
def test_any_profile_parses_the_same_with_and_without_defaults(spec: dict[str, Any]) -> None:
    assert parse(profile(defaulted(spec, schema()))) == parse(profile(spec))


def test_an_error_lists_every_bad_field() -> None:
    error = refused(
        {
            "paused": "yes",
            "mode": "Loud",
            "nodeSelector": {"a": 1},
            "collector": {
                "samplePeriodMilliseconds": 300,
                "sources": {"include": ["stat", "nonsense"], "exclude": ["stat"]},
                "privilege": "Some",
                "extraHostPaths": [{"path": "/proc/1"}, {"path": "etc"}, {}],
                "metricsPort": True,
            },
            "analyzer": {"replicas": 0, "windowSeconds": 1, "strideSeconds": 2},
            "redis": {"url": "redis://user:hunter2@host"},
            "reporting": {"minSeverity": "Bad", "reportsPerMinute": 0},
        }
    )
    assert [problem.split(": ")[0] for problem in error.problems] == [
        "spec.nodeSelector",
        "spec.paused",
        "spec.mode",
        "spec.collector.sources.include",
        "spec.collector.sources.exclude",
        "spec.collector.privilege",
        "spec.collector.metricsPort",
        "spec.collector.extraHostPaths[0].path",
        "spec.collector.extraHostPaths[1].path",
        "spec.collector.extraHostPaths[2].path",
        "spec.analyzer.replicas",
        "spec.redis.url",
        "spec.reporting.minSeverity",
        "spec.collector.samplePeriodMilliseconds",
        "spec.reporting.reportsPerMinute",
        "spec.analyzer.windowSeconds",
    ]
    assert str(error) == "; ".join(error.problems)
    assert error.reason == "InvalidSpec"
    assert "hunter2" not in str(error)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("x", "spec: must be an object"),
        ({"collector": []}, "spec.collector: must be an object"),
        ({"tolerations": ["a"]}, "spec.tolerations[0]: must be an object"),
        ({"collector": {"sources": {"include": ["gpu"]}}}, "no such source: gpu; known are aer, "),
        (
            {"collector": {"sources": {"exclude": ["subject-perf"]}}},
            "needs collector.perfCgroups",
        ),
        ({"collector": {"extraHostPaths": [{"path": "/a/../b"}]}}, "in its shortest form"),
        ({"collector": {"extraHostPaths": [{"path": "/"}]}}, "in its shortest form"),
        ({"collector": {"extraHostPaths": [{"path": "/sys"}]}}, "is mounted below /host already"),
        ({"collector": {"extraHostPaths": [{"path": "/a"}, {"path": "/a"}]}}, "listed twice"),
        ({"collector": {"maxSubjects": 1.5}}, "maxSubjects: must be an integer, not 1.5"),
        ({"analyzer": {"hypothesesConfigMapRef": {}}}, "hypothesesConfigMapRef.name: is required"),
        ({"analyzer": {"replicas": 65}}, "replicas: must be at most 64, not 65"),
        ({"redis": {}}, "spec.redis.url: is required"),
        ({"redis": {"url": "http://r"}}, "must begin with redis:// or rediss:// or redis+sentinel"),
        ({"redis": {"url": "redis://r?db=1"}}, "must not contain options"),
        ({"redis": {"url": "redis://r:x"}}, "port must be a number"),
        ({"redis": {"url": "redis://r/x"}}, "the database must be a number"),
        (
            {"redis": {"url": "redis://a,b"}},
            "for several servers give those of Sentinels (redis+sentinel://",
        ),
        ({"redis": {"url": "redis+sentinel://a,b"}}, "needs the name of the service"),
        ({"redis": {"url": "redis://r", "tls": {}}}, "spec.redis.tls: has no effect"),
        ({"redis": {"url": "rediss://r", "tls": {"caSecretRef": {}}}}, "caSecretRef.name: is req"),
    ],
)
def test_a_refusal_names_the_field_and_the_problem(spec: Any, message: str) -> None:
    error = refused(spec)
    assert message in str(error)
    assert len(error.problems) == 1


def test_a_name_too_long_for_owned_objects_is_refused() -> None:
    assert "at most 52 characters, not 53" in str(refused({}, "p" * 53))


def test_a_password_that_contains_the_separator_is_not_repeated() -> None:
    assert "secret" not in str(refused({"redis": {"url": "redis://:secret@h"}}))


def test_without_any_redis_there_is_a_reason_of_its_own() -> None:
    with pytest.raises(SpecError, match=r"spec\.redis: is required") as caught:
        parse(profile(), Defaults("n", "c", "a"))
    assert caught.value.reason == "RedisMissing"
    parsed = parse(profile({"redis": {"url": "redis://own"}}), Defaults("n", "c", "a"))
    assert redis_of(parsed, DEFAULTS).url == "redis://own"
    assert redis_of(parse(profile()), DEFAULTS).url == DEFAULTS.redis_url


def test_the_operators_redis_brings_its_secrets() -> None:
    defaults = Defaults(
        "n", "c", "a", redis_url="rediss://r", redis_credentials_secret="login",
        redis_collector_credentials_secret="few-rights",
        redis_password_key="word", redis_ca_secret="ca", redis_insecure_skip_verify=False,
    )  # fmt: skip
    assert defaults.redis is not None
    assert defaults.redis.credentials == RedisCredentials("login", "username", "word")
    assert defaults.redis.collector_credentials == RedisCredentials(
        "few-rights", "username", "word"
    )
    assert defaults.redis.authority == SecretKey("ca", "ca.crt")


def test_an_image_of_a_sites_own_may_have_sources_of_its_own() -> None:
    spec = {"image": "ours", "sources": {"include": ["stat", "lustre"]}}
    assert parse(profile({"collector": spec})).collector.sources.include == ("stat", "lustre")


def test_fields_of_a_newer_schema_are_left_alone() -> None:
    assert parse(profile({"later": {"x": 1}, "collector": {"later": 2}})) == parse(profile())


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["collector", "analyzer", "redis", "sources", "include", "tls", "url", "name",
                     "extraHostPaths", "path", "mode", "nodeSelector", "replicas", "resources"]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)  # fmt: skip
@examples(150)
def test_anything_is_a_profile_or_a_spec_error(spec: Any) -> None:
    try:
        parsed = parse({**profile(), "spec": spec})
    except SpecError as error:
        assert error.problems
    else:
        assert isinstance(parsed, Profile)


def test_the_list_of_sources_is_the_collectors() -> None:
    from pathlib import Path

    from reveal_collector.readers.source import Roots
    from reveal_collector.registry import build

    nowhere = Roots(Path("/nonexistent"), Path("/nonexistent"), Path("/nonexistent"))
    default = CollectorSettings("n", "")
    every = CollectorSettings("n", "", perf_cgroups=True)
    assert {source.name for source in build(nowhere, default)} == set(ALWAYS)
    assert {source.name for source in build(nowhere, every)} == set(NAMES)
    assert len(set(NAMES)) == len(NAMES) == len(ALWAYS) + len(WITH_PERF_CGROUPS)
