"""Profiles that come with a release."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from reveal_contract.kube.names import API_VERSION, PROFILE_KIND
from support.helm_chart import CHART, ROOT, Helm, HelmError, find_object

EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))
PROFILES = CHART / "ci" / "profiles-values.yaml"


def test_without_a_cluster_profiles_are_rendered_plainly(helm: Helm) -> None:
    # for `helm template | kubectl apply`, and for what renders charts elsewhere
    profile = find_object(helm.render("--values", PROFILES), PROFILE_KIND, "inference")
    assert profile["apiVersion"] == API_VERSION
    assert "annotations" not in profile["metadata"]


def test_the_spec_is_passed_on_unchanged(helm: Helm) -> None:
    objects = helm.render("--values", PROFILES)
    assert find_object(objects, PROFILE_KIND, "gpu-nodes")["spec"] == {}
    assert find_object(objects, PROFILE_KIND, "inference")["spec"]["collector"] == {
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
        assert find_object(helm.render("--values", values), PROFILE_KIND, name)["spec"] == spec


@pytest.mark.parametrize(
    "slip",
    [
        "profiles.p.colector.metricsPort=1", "profiles.p.collector.metricPort=1",
        "profiles.p.mode=Silent", "profiles.p.analyzer.replicas=many",
        "profiles.p.reporting.minSeverity=Awful", "profiles.p.redis.credentialsSecretRef.nam=x",
    ],
)  # fmt: skip
def test_a_misspelled_field_is_refused(helm: Helm, slip: str) -> None:
    with pytest.raises(HelmError, match="schema"):
        helm.render("--set", slip)
