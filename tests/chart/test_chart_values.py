"""Values are checked twice: by a schema one by one, by sentences where they do not go together."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from support.helm_chart import CHART, Helm, HelmError, find_object

SCHEMA = json.loads((CHART / "values.schema.json").read_text())
VALUES = yaml.safe_load((CHART / "values.yaml").read_text())


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    name = schema.get("$ref", "").rpartition("/")[2]
    return SCHEMA["definitions"][name] if name else schema


def differences(values: dict[str, Any], schema: dict[str, Any], path: str = "") -> list[str]:
    """Keys that only one of both knows."""
    known = resolved(schema)
    if "properties" not in known:
        return []
    found = [] if known.get("additionalProperties") is False else [f"{path}: not closed"]
    properties = {name: each for name, each in known["properties"].items() if name != "global"}
    found += [f"{path}{name}: in one only" for name in values.keys() ^ properties.keys()]
    for name in values.keys() & properties.keys():
        if isinstance(values[name], dict) and "requests" not in values[name]:
            found += differences(values[name], properties[name], f"{path}{name}.")
    return found


def test_schema_and_values_know_the_same_keys() -> None:
    assert differences(VALUES, SCHEMA) == []


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (
            ["--namespace", "default"],
            "create it, label it pod-security.kubernetes.io/enforce=privileged and add --namespace",
        ),
        (["--set", "redis.url=redis://me:secret@host:6379"], "put them into a Secret"),
        (["--set", "redis.url=host:6379"], "it must be redis://host:port/number"),
        (["--set", "redis.url=redis+sentinel://host:26379"], "or redis+sentinel://host:port"),
        (["--set", "redis.url=redis+cluster://host:6379/1"], r"or redis+cluster://host:port"),
        (["--set", "redis.url=unix:///run/redis.sock"], "it must be redis://host:port/number"),
        (["--set", "redis.url=rediss://host?ssl_cert_reqs=none"], "without options"),
        (["--set", "redis.existingSecret=s"], "name the Redis these credentials are for"),
        (
            ["--set", "redis.url=redis://host", "--set", "redis.existingCollectorSecret=s"],
            "analyzers need a user, too",
        ),
        (
            ["--set", "redis.url=redis://host", "--set", "redis.tls.caSecret=s"],
            "begin redis.url with rediss://",
        ),
        (
            ["--set", "redis.url=redis://host", "--set", "redis.tls.insecureSkipVerify=true"],
            "begin redis.url with rediss://",
        ),
        (
            ["--set", "redis.url=redis://host", "--set", "evaluationRedis.enabled=true"],
            "use your Redis (evaluationRedis.enabled=false), or the one for evaluation",
        ),
        (["--set", "operator.healthPort=9478"], "give them two numbers"),
        (
            ["--set", "networkPolicy.enabled=true,redis.url=rediss://redis.example.com:6380/0"],
            "networkPolicy.redisPorts does not have 6380, the port of redis.url",
        ),
        (
            ["--set", "networkPolicy.enabled=true,networkPolicy.redisPorts={6380}",
             "--set", "redis.url=redis://redis.example.com"],
            "networkPolicy.redisPorts does not have 6379, the port of redis.url",
        ),
        (
            ["--set", "networkPolicy.enabled=true,networkPolicy.redisPorts={6380}",
             "--set", "evaluationRedis.enabled=true"],
            "does not have 6379, the port of the evaluation Redis",
        ),
        (
            ["--set", "networkPolicy.enabled=true",
             "--set", "profiles.a.redis.url=redis://[fd00::1]:7000/1"],
            "does not have 7000, the port of profiles.a.redis.url",
        ),
        (
            ["--set", "serviceAccounts.analyzer.create=false"],
            "name the ServiceAccount to use in serviceAccounts.analyzer.name",
        ),
        (
            ["--set", "serviceAccounts.analyzer.name=a,serviceAccounts.collector.name=a"],
            "need three ServiceAccounts, each with its own rights",
        ),
        (
            [
                "--set", "metrics.serviceMonitor.enabled=true",
                "--set", "metrics.podMonitor.enabled=true",
            ],
            "enable one of them",
        ),
        (["--set", "prometheusRule.disabled={RevealNothing}"], "there are RevealCriticalFinding"),
        (
            ["--set", "metrics.access.authorization.credentials.name=s"],
            "no effect without metrics.access.secret",
        ),
    ],
)  # fmt: skip
def test_conflicting_values_are_refused_with_a_sentence(
    helm: Helm, flags: list[str], sentence: str
) -> None:
    with pytest.raises(HelmError) as refused:
        helm.render(*flags)
    assert sentence in str(refused.value)


def test_ports_of_redis_that_agree_are_accepted(helm: Helm) -> None:
    ports = "networkPolicy.enabled=true,networkPolicy.redisPorts={6380}"
    assert helm.render("--set", f"{ports},redis.url=rediss://redis.example.com:6380/0")
    assert helm.render("--set", f"{ports},redis.url=rediss://[fd00::1]:6380")
    assert helm.render("--set", "networkPolicy.enabled=true,redis.url=redis://redis.example.com")
    assert helm.render("--set", "redis.url=redis://redis.example.com:7000")


def test_a_refusal_can_be_overridden_where_allowed(helm: Helm) -> None:
    assert helm.render("--set", "allowDefaultNamespace=true", namespace="default")


@pytest.mark.parametrize(
    "wrong",
    [
        "replicas=2", "operator.replicas=2", "operator.logFormat=xml", "image.pullPolicy=Sometimes",
        "operator.metricsPort=80", "redis.password=secret", "redis.existingSecret=Not_A_Name",
        "evaluationRedis.maxMemoryMegabytes=1", "profiles.Upper.paused=true",
        "operator.image.digest=sha256:abc", "networkPolicy.nodeCIDRs={10.0.0.0}",
        "metrics.serviceMonitor.interval=often", "prometheusRule.runbookURL=wiki",
        "crds.enabled=yes", "profileLimits.claims={Not_A_Name}", "profileLimits.configMaps={a/b}",
        "operator.resources.request.cpu=1", "nodeConditions=true",
    ],
)  # fmt: skip
def test_an_unknown_key_or_a_wrong_value_is_refused(helm: Helm, wrong: str) -> None:
    with pytest.raises(HelmError, match=r"values don't meet the specifications of the schema"):
        helm.render("--set", wrong)


def test_a_profile_may_have_52_characters(helm: Helm) -> None:
    assert helm.render("--set", f"profiles.{'p' * 52}.paused=true")
    with pytest.raises(HelmError, match="schema"):
        helm.render("--set", f"profiles.{'p' * 53}.paused=true")


def test_the_chart_works_as_a_dependency(helm: Helm) -> None:
    # helm gives every dependency the parent's globals
    assert helm.render("--set", "global.imageRegistry=registry.example.com")


def test_limits_of_profiles_are_flags_of_the_operator(helm: Helm) -> None:
    flags = (
        "--set", "profileLimits.enabled=true", "--set", "profileLimits.images={registry/x}",
        "--set", "profileLimits.hostPaths={/opt/lustre}", "--set", "profileLimits.secrets={mine}",
        "--set", "profileLimits.claims={samples}", "--set", "profileLimits.configMaps={causes}",
        "--set", "profileLimits.addresses={rediss://r:6380}",
    )  # fmt: skip
    operator = find_object(helm.render(*flags), "Deployment")["spec"]["template"]["spec"]
    assert set(operator["containers"][0]["args"]) >= {
        "--limit-profiles", "--permit-image=registry/x", "--permit-host-path=/opt/lustre",
        "--permit-secret=mine", "--permit-claim=samples", "--permit-config-map=causes",
        "--permit-address=rediss://r:6380",
    }  # fmt: skip
    without = find_object(helm.render(), "Deployment")["spec"]["template"]["spec"]
    assert not [each for each in without["containers"][0]["args"] if "permit" in each]


@pytest.mark.parametrize(
    ("kubernetes", "flags", "expected"),
    [
        ("1.34.0", ("--set", "profileLimits.enabled=true"), True),
        ("1.29.0", ("--set", "profileLimits.enabled=true"), False),
        ("1.34.0", (), False),
        (
            "1.34.0",
            ("--set", "profileLimits.enabled=true,profileLimits.admissionPolicy=false"),
            False,
        ),
    ],
)
def test_admission_limits_profiles_where_the_api_server_can(
    helm: Helm, kubernetes: str, flags: tuple[str, ...], expected: bool
) -> None:
    kinds = {each["kind"] for each in helm.render(*flags, kubernetes=kubernetes)}
    assert ("ValidatingAdmissionPolicy" in kinds) is expected


def test_analyzers_reach_the_ports_of_receivers(helm: Helm) -> None:
    flags = ("--set", "networkPolicy.enabled=true", "--set", "networkPolicy.otlpPorts={4318}")
    policy = find_object(helm.render(*flags), "NetworkPolicy", "reveal-analyzer")
    ports = [port["port"] for rule in policy["spec"]["egress"] for port in rule.get("ports", ())]
    assert 4318 in ports
