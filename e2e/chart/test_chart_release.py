"""Install, upgrade, rollback, uninstall: what Helm does on a real API server."""

from __future__ import annotations

import base64
import shutil
from pathlib import Path

import pytest
import yaml

from support.chart_releases import DEFINITIONS, Cluster
from support.helm_chart import CHART, NAMESPACE, HelmError

PROFILES = CHART / "ci" / "profiles-values.yaml"


def test_a_second_install_applies_the_profiles(fresh: Cluster) -> None:
    output = fresh.upgrade("--values", PROFILES)
    assert "Reveal 0.1.0 is installed in reveal-system." in output
    assert "NO PROFILE YET" in output
    assert all(fresh.definition(name) for name in DEFINITIONS)
    output = fresh.upgrade("--values", PROFILES)
    assert "NO PROFILE YET" not in output
    assert fresh.profile("gpu-nodes") is not None
    inference = fresh.profile("inference")
    assert inference is not None
    assert inference["spec"]["collector"]["metricsPort"] == 9177
    assert inference["spec"]["collector"]["cpuBudgetMillicores"] == 20  # the schema's default


def test_profiles_follow_the_release(fresh: Cluster) -> None:
    def paused() -> bool:
        profile = fresh.profile("inference")
        assert profile is not None
        return bool(profile["spec"]["paused"])

    for _ in range(2):
        fresh.upgrade("--values", PROFILES)
    assert not paused()
    fresh.upgrade("--values", PROFILES, "--set", "profiles.inference.paused=true")
    assert paused()
    fresh.helm("rollback", "reveal", "2", "--namespace", NAMESPACE)
    assert not paused()
    fresh.upgrade("--set", "profiles.inference.mode=Observe")
    assert fresh.profile("gpu-nodes") is None
    assert fresh.profile("inference") is not None
    fresh.apply_profile("by-hand")
    fresh.uninstall()
    assert fresh.profile("inference") is None
    assert fresh.profile("by-hand") is not None


def test_uninstalling_keeps_the_definitions_by_default(fresh: Cluster) -> None:
    fresh.upgrade()
    assert "resource policy" in fresh.uninstall()
    assert all(fresh.definition(name) for name in DEFINITIONS)
    fresh.upgrade("--set", "crds.keep=false")
    fresh.uninstall()
    fresh.await_no_definitions()


def test_an_upgrade_brings_the_new_schema(fresh: Cluster, tmp_path: Path) -> None:
    older = tmp_path / "reveal"
    shutil.copytree(CHART, older)
    path = older / "templates" / "crds" / "anomalyreports.yaml"
    threshold = path.read_text().replace("shortNames: [anomalies", "shortNames: [older")
    assert threshold != path.read_text()
    path.write_text(threshold)

    def short_names() -> list[str]:
        definition = fresh.definition("anomalyreports.reveal.dev")
        assert definition is not None
        names: list[str] = definition["spec"]["names"]["shortNames"]
        return names

    fresh.upgrade(chart=older)
    assert "older" in short_names()
    fresh.upgrade()
    assert "anomalies" in short_names()
    fresh.helm("rollback", "reveal", "1", "--namespace", NAMESPACE)
    assert "older" in short_names()
    # kept ones, too
    fresh.uninstall()
    assert "older" in short_names()
    fresh.upgrade()
    assert "anomalies" in short_names()


def test_a_changed_flag_reaches_the_operator_and_can_be_rolled_back(fresh: Cluster) -> None:
    def flags() -> list[str]:
        found = fresh.kube.get("apps/v1", "Deployment", "reveal-operator", NAMESPACE)
        assert found is not None
        args: list[str] = found["spec"]["template"]["spec"]["containers"][0]["args"]
        return args

    fresh.upgrade("--set", "redis.url=redis://one:6379")
    assert "--redis-url=redis://one:6379" in flags()
    fresh.upgrade("--reuse-values", "--set", "redis.url=redis://two:6379")
    assert "--redis-url=redis://two:6379" in flags()
    fresh.helm("rollback", "reveal", "1", "--namespace", NAMESPACE)
    assert "--redis-url=redis://one:6379" in flags()


def test_the_evaluation_redis_keeps_its_password(fresh: Cluster) -> None:
    def password() -> str:
        secret = fresh.kube.get("v1", "Secret", "reveal-evaluation-redis", NAMESPACE)
        assert secret is not None
        return base64.b64decode(secret["data"]["password"]).decode()

    fresh.upgrade("--set", "evaluationRedis.enabled=true")
    first = password()
    assert len(first) == 32
    fresh.upgrade("--reuse-values", "--set", "operator.logFormat=text")
    assert password() == first
    fresh.uninstall()
    fresh.upgrade("--set", "evaluationRedis.enabled=true")
    assert password() != first


def test_definitions_of_another_release_are_not_taken_over(fresh: Cluster) -> None:
    fresh.upgrade()
    with pytest.raises(HelmError, match="invalid ownership metadata"):
        fresh.helm("install", "other", CHART, "--namespace", NAMESPACE)


def test_wrong_values_install_nothing(fresh: Cluster) -> None:
    with pytest.raises(HelmError, match="put them into a Secret"):
        fresh.upgrade("--set", "redis.url=redis://me:secret@host")
    assert not any(fresh.definition(name) for name in DEFINITIONS)


def test_every_example_of_values_installs(fresh: Cluster) -> None:
    for values in sorted((CHART / "ci").glob("*-values.yaml")):
        given = yaml.safe_load(values.read_text())
        if given.keys() & {"metrics", "prometheusRule"}:
            continue  # kinds of the Prometheus Operator
        fresh.upgrade("--values", values)
        assert "STATUS: deployed" in fresh.helm("status", "reveal", "--namespace", NAMESPACE)
