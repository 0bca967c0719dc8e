"""Limits of profiles: what is refused, with the field and what to do."""

from __future__ import annotations

from typing import Any

import pytest

from reveal_operator.__main__ import options_of, parser
from reveal_operator.profile import ProfileLimits
from reveal_operator.spec import Defaults, SpecError, parse
from support.profile_factory import DEFAULTS, profile

LIMITS = ProfileLimits(
    images=("registry.example.com/reveal", "docker.io/x/collector:1.0"),
    host_paths=("/opt/lustre",),
    secrets=("mine",),
    claims=("samples",),
    config_maps=("causes",),
    addresses=("rediss://redis.example.com:6380", "https://otel.example.com"),
)
URL = "rediss://redis.example.com:6380/0"


def refused(spec: dict[str, Any], limits: ProfileLimits = LIMITS) -> list[str]:
    """Return the fields that are refused."""
    try:
        parse(profile(spec), Defaults(**{**vars(DEFAULTS), "limits": limits}))
    except SpecError as error:
        assert error.reason == "NotPermitted"
        return [problem.partition(":")[0] for problem in error.problems]
    return []


def collector(**fields: Any) -> dict[str, Any]:
    return {"collector": fields}


@pytest.mark.parametrize(
    "spec",
    [
        {},
        collector(image="registry.example.com/reveal/collector:1.2"),
        collector(image="registry.example.com/reveal:1.2"),
        collector(image="registry.example.com/reveal@sha256:" + "0" * 64),
        collector(image="docker.io/x/collector:1.0"),
        collector(extraHostPaths=[{"path": "/opt/lustre"}, {"path": "/opt/lustre/stats"}]),
        {"redis": {"url": URL, "credentialsSecretRef": {"name": "mine"}}},
        {"reporting": {"otlp": {"endpoint": "https://otel.example.com/base"}}},
        {"evidence": {"store": "Folder", "claimName": "samples"}},
        {"evidence": {"claimName": ""}},
        {"analyzer": {"hypothesesConfigMapRef": {"name": "causes"}}},
    ],
)
def test_what_is_permitted_is_a_profile(spec: dict[str, Any]) -> None:
    assert refused(spec) == []


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        (collector(image="evil.example.com/x"), "spec.collector.image"),
        (collector(image="registry.example.com/reveal-evil:1"), "spec.collector.image"),
        (collector(image="docker.io/x/collector:1.0.1"), "spec.collector.image"),
        ({"analyzer": {"image": "evil"}}, "spec.analyzer.image"),
        (collector(extraHostPaths=[{"path": "/opt/lustre2"}]), "spec.collector.extraHostPaths"),
        (collector(extraHostPaths=[{"path": "/var/run/docker.sock"}]),
         "spec.collector.extraHostPaths"),
        ({"redis": {"url": "redis://evil:6379"}}, "spec.redis.url"),
        ({"redis": {"url": "rediss://redis.example.com:63801/0"}}, "spec.redis.url"),
        ({"redis": {"url": URL, "credentialsSecretRef": {"name": "regcred"}}},
         "spec.redis.credentialsSecretRef.name"),
        ({"redis": {"url": URL, "collectorCredentialsSecretRef": {"name": "regcred"}}},
         "spec.redis.collectorCredentialsSecretRef.name"),
        ({"redis": {"url": URL, "tls": {"caSecretRef": {"name": "regcred"}}}},
         "spec.redis.tls.caSecretRef.name"),
        ({"reporting": {"otlp": {"endpoint": "https://otel.example.com.evil"}}},
         "spec.reporting.otlp.endpoint"),
        ({"reporting": {"otlp": {"endpoint": "https://otel.example.com",
                                 "headersSecretRef": {"name": "regcred"}}}},
         "spec.reporting.otlp.headersSecretRef.name"),
        ({"evidence": {"store": "Folder", "claimName": "samples-of-others"}},
         "spec.evidence.claimName"),
        ({"analyzer": {"hypothesesConfigMapRef": {"name": "causes-of-others"}}},
         "spec.analyzer.hypothesesConfigMapRef.name"),
    ],
)  # fmt: skip
def test_what_is_not_permitted_names_its_field(spec: dict[str, Any], field: str) -> None:
    assert refused(spec) == [field]
    assert refused(spec, ProfileLimits()) != []


def test_a_refusal_has_the_name_and_the_remedy() -> None:
    with pytest.raises(SpecError) as caught:
        parse(profile(collector(image="evil/x")), Defaults(**{**vars(DEFAULTS), "limits": LIMITS}))
    assert str(caught.value) == (
        "spec.collector.image: evil/x is not permitted: name another, or ask whoever installed"
        " Reveal to add it to the value profileLimits.images of the chart"
    )


def test_without_limits_a_profile_may_name_anything() -> None:
    parse(profile(collector(image="any/image", extraHostPaths=[{"path": "/opt"}])), DEFAULTS)


LIMITED: dict[str, dict[str, Any]] = {
    "--permit-image": {"collector": {"image": "registry/x:1"}},
    "--permit-host-path": {"collector": {"extraHostPaths": [{"path": "/opt/x"}]}},
    "--permit-address": {"redis": {"url": "redis://r/1"}},
    "--permit-secret": {"redis": {"url": "redis://r/1", "credentialsSecretRef": {"name": "s"}}},
    "--permit-claim": {"evidence": {"store": "Folder", "claimName": "c"}},
    "--permit-config-map": {"analyzer": {"hypothesesConfigMapRef": {"name": "m"}}},
}
PERMITTED = {
    "--permit-image": "registry/x", "--permit-host-path": "/opt", "--permit-address": "redis://r",
    "--permit-secret": "s", "--permit-claim": "c", "--permit-config-map": "m",
}  # fmt: skip


@pytest.mark.parametrize("flag", LIMITED)
def test_a_limit_of_profiles_refuses_what_its_flag_does_not_permit(flag: str) -> None:
    others = [word for name, value in PERMITTED.items() if name != flag for word in (name, value)]

    def accepted(*flags: str) -> bool:
        arguments = parser().parse_args(["--redis-url", "redis://r", *flags])
        try:
            parse(profile(LIMITED[flag]), options_of(arguments, {}).defaults)
        except SpecError:
            return False
        return True

    assert accepted()
    assert not accepted("--limit-profiles", *others)
    assert accepted("--limit-profiles", *others, flag, PERMITTED[flag])
