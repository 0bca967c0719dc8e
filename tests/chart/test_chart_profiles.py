"""Profiles that come with a release, and what its notes say."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from charts import CHART, ROOT, Helm, HelmError, one
from reveal_contract.kubernetes import API_VERSION, PROFILE_KIND

EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))
PROFILES = CHART / "ci" / "profiles-values.yaml"
HOOK = "helm.sh/hook"


def test_before_the_kind_is_served_a_profile_is_a_hook(helm: Helm) -> None:
    # helm looks all objects of a release up before it makes the first definition
    profile = one(helm.render("--values", PROFILES), PROFILE_KIND, "inference")
    about = profile["metadata"]["annotations"]
    assert about[HOOK] == "post-install,post-upgrade"
    # so that the next upgrade may take it over
    assert about["meta.helm.sh/release-name"] == "reveal"
    assert about["meta.helm.sh/release-namespace"] == "reveal-system"
    assert profile["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "Helm"


def test_later_it_is_an_object_of_the_release(helm: Helm) -> None:
    known = ("--api-versions", f"{API_VERSION}/{PROFILE_KIND}")
    objects = helm.render("--values", PROFILES, *known)
    for name in ("gpu-nodes", "inference"):
        assert HOOK not in one(objects, PROFILE_KIND, name)["metadata"]["annotations"]


def test_helm_never_deletes_a_profile(helm: Helm) -> None:
    for each in helm.render("--values", PROFILES):
        if each["kind"] == PROFILE_KIND:
            assert each["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"


def test_the_spec_is_passed_on_as_it_is(helm: Helm) -> None:
    objects = helm.render("--values", PROFILES)
    assert one(objects, PROFILE_KIND, "gpu-nodes")["spec"] == {}
    assert one(objects, PROFILE_KIND, "inference")["spec"]["collector"] == {
        "privilege": "Capabilities", "metricsPort": 9177,
    }  # fmt: skip


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_can_come_with_a_release(helm: Helm, tmp_path: Path, path: Path) -> None:
    for example in yaml.safe_load_all(path.read_text()):
        if example["kind"] != PROFILE_KIND:
            continue
        name, spec = example["metadata"]["name"], example.get("spec", {})
        values = tmp_path / "values.yaml"
        values.write_text(yaml.safe_dump({"profiles": {name: spec}}))
        assert one(helm.render("--values", values), PROFILE_KIND, name)["spec"] == spec


@pytest.mark.parametrize(
    "slip",
    [
        "profiles.p.colector.metricsPort=1", "profiles.p.collector.metricPort=1",
        "profiles.p.mode=Silent", "profiles.p.analyzer.replicas=many",
        "profiles.p.reporting.minSeverity=Awful", "profiles.p.redis.credentialsSecretRef.nam=x",
    ],
)  # fmt: skip
def test_a_slip_of_the_pen_is_refused_and_not_dropped(helm: Helm, slip: str) -> None:
    with pytest.raises(HelmError, match="schema"):
        helm.render("--set", slip)
