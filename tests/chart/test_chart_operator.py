"""The operator's Deployment speaks the operator's own flags."""

from __future__ import annotations

from pathlib import Path

import pytest

from reveal_contract import VERSION
from reveal_contract.kube.names import NAMESPACE_VARIABLE, POD_VARIABLE
from reveal_operator.__main__ import options_of, parser
from reveal_operator.app import OperatorOptions
from reveal_operator.spec import Defaults
from support.helm_chart import CHART, NAMESPACE, VALUES, Helm, find_object


def options(helm: Helm, *flags: str | Path) -> OperatorOptions:
    """What the operator would make of its command line and environment."""
    name = "telemetry-operator" if "scheduling" in str(flags) else "reveal-operator"
    deployment = find_object(helm.render(*flags), "Deployment", name)
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    assert container["command"] == ["reveal-operator"]
    environment = {
        each["name"]: f"<{each['valueFrom']['fieldRef']['fieldPath']}>" for each in container["env"]
    }
    assert environment == {
        NAMESPACE_VARIABLE: "<metadata.namespace>", POD_VARIABLE: "<metadata.name>",
    }  # fmt: skip
    environment[NAMESPACE_VARIABLE] = NAMESPACE
    words = [word.replace(f"$({NAMESPACE_VARIABLE})", NAMESPACE) for word in container["args"]]
    result = options_of(parser().parse_args(words), environment)
    ports = {each["name"]: each["containerPort"] for each in container["ports"]}
    assert ports == {"metrics": result.metrics_port, "health": result.health_port}
    return result


@pytest.mark.parametrize("values", VALUES, ids=lambda path: path.stem)
def test_every_flag_is_known_to_the_operator(helm: Helm, values: Path) -> None:
    assert options(helm, "--values", values).defaults.namespace == NAMESPACE


def test_without_values_the_operators_defaults_hold(helm: Helm) -> None:
    result = options(helm)
    assert result.defaults == Defaults(
        namespace=NAMESPACE,
        collector_image=f"reveal-collector:{VERSION}",
        analyzer_image=f"reveal-analyzer:{VERSION}",
    )
    assert result.defaults.redis is None


def test_the_redis_settings_reach_the_operator(helm: Helm) -> None:
    redis = options(helm, "--values", CHART / "ci" / "redis-tls-values.yaml").defaults.redis
    assert redis is not None
    assert redis.url == "rediss://redis.example.com:6380/2"
    assert redis.authority is not None
    assert (redis.authority.name, redis.authority.key) == ("redis-authority", "authority.pem")
    assert redis.credentials is not None
    assert redis.credentials.name == "reveal-redis"
    assert (redis.credentials.username_key, redis.credentials.password_key) == ("user", "pass")
    assert not redis.insecure_skip_verify
    careless = "redis.url=rediss://r:1,redis.tls.insecureSkipVerify=true"
    assert options(helm, "--set", careless).defaults.redis_insecure_skip_verify


def test_the_evaluation_redis_is_the_default_of_every_profile(helm: Helm) -> None:
    redis = options(helm, "--set", "evaluationRedis.enabled=true").defaults.redis
    assert redis is not None
    assert redis.credentials is not None
    assert redis.credentials.name == "reveal-evaluation-redis"


def test_names_of_accounts_reach_the_operator(helm: Helm) -> None:
    result = options(helm, "--values", CHART / "ci" / "accounts-values.yaml").defaults
    assert result.analyzer_service_account == "anomaly-writer"
    assert result.collector_service_account == "reveal-collector"


def test_image_pull_secrets_reach_the_pods(helm: Helm) -> None:
    result = options(helm, "--values", CHART / "ci" / "images-values.yaml").defaults
    assert result.image_pull_secrets == ("regcred", "other")
    assert result.image_pull_policy == "Always"


def test_a_secret_restricts_who_may_read_metrics(helm: Helm) -> None:
    values = CHART / "ci" / "metrics-access-values.yaml"
    result = options(helm, "--values", values)
    assert result.defaults.metrics_secret == "reveal-metrics"
    deployment = find_object(helm.render("--values", values), "Deployment", "reveal-operator")
    pod = deployment["spec"]["template"]["spec"]
    (mounted,) = (
        each["name"] for each in pod["containers"][0]["volumeMounts"]
        if each["mountPath"] == result.metrics_access_folder
    )  # fmt: skip
    assert {"name": mounted, "secret": {"secretName": "reveal-metrics"}} in pod["volumes"]
