"""What the chart renders, for every file of values in ci/."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from reveal_contract import VERSION
from reveal_contract.kube import names
from support.helm_chart import CHART, NAMESPACE, VALUES, Helm, find_object, identity, kinds, pods
from support.pod_probes import probe_actions, shell_probes

CLUSTER_SCOPED = {
    "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", names.PROFILE_KIND,
    "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
}  # fmt: skip
ALL = pytest.mark.parametrize("values", VALUES, ids=lambda path: path.stem)
LABEL = re.compile(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?\Z")


@ALL
def test_helm_lint_passes(helm: Helm, values: Path) -> None:
    helm("lint", "--strict", CHART, "--namespace", NAMESPACE, "--values", values)


@ALL
def test_every_object_is_named_placed_and_labelled(helm: Helm, values: Path) -> None:
    objects = helm.render("--values", values)
    assert len({identity(each) for each in objects}) == len(objects)
    for each in objects:
        about = each["metadata"]
        assert each["kind"] == "CustomResourceDefinition" or LABEL.match(about["name"])
        assert ("namespace" in about) == (each["kind"] not in CLUSTER_SCOPED), identity(each)
        assert about.get("namespace", NAMESPACE) == NAMESPACE
        if not about["name"].endswith(("-extra", "-hypotheses")):
            assert about["labels"][names.LABEL_NAME] == names.APP
            assert about["labels"]["app.kubernetes.io/instance"] == "reveal"


@ALL
def test_no_rendered_value_is_empty(helm: Helm, values: Path) -> None:
    text = yaml.safe_dump(helm.render("--values", values))
    assert "<no value>" not in text
    assert "<nil>" not in text
    assert "%!" not in text  # a format that got too little


@ALL
def test_every_pod_is_locked_down(helm: Helm, values: Path) -> None:
    for pod in pods(helm.render("--values", values)):
        about = pod["securityContext"]
        assert about["runAsNonRoot"]
        assert about["runAsUser"] == 65532
        assert about["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not pod["enableServiceLinks"]
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert {"cpu", "memory"} <= container["resources"]["requests"].keys()


def test_the_default_release_has_the_documented_objects(helm: Helm) -> None:
    result = {identity(each) for each in helm.render()}
    assert result == {
        ("ServiceAccount", "reveal-operator"),
        ("ServiceAccount", "reveal-collector"),
        ("ServiceAccount", "reveal-analyzer"),
        ("CustomResourceDefinition", "revealprofiles.reveal.dev"),
        ("CustomResourceDefinition", "anomalyreports.reveal.dev"),
        *(
            (kind, f"reveal-{component}")
            for kind in ("ClusterRole", "ClusterRoleBinding")
            for component in ("operator", "collector", "analyzer")
        ),
        ("ClusterRole", "reveal-view"),
        ("ClusterRole", "reveal-edit"),
        ("ClusterRole", "reveal-silence"),
        ("Role", "reveal-operator"),
        ("Role", "reveal-samples"),
        ("RoleBinding", "reveal-operator"),
        ("Service", "reveal-operator"),
        ("Deployment", "reveal-operator"),
        ("Pod", "reveal-test"),
    }


def test_the_version_is_that_of_the_code() -> None:
    about = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert about["appVersion"] == VERSION


@pytest.mark.parametrize(
    ("release", "prefix"),
    [("reveal", "reveal"), ("my-reveal", "my-reveal"), ("abc", "abc-reveal"), ("x" * 53, None)],
)
def test_names_follow_the_release(helm: Helm, release: str, prefix: str | None) -> None:
    objects = helm.render("--set", "evaluationRedis.enabled=true", release=release)
    assert all(len(each["metadata"]["name"]) <= 63 for each in objects)
    if prefix:
        assert find_object(objects, "Deployment", f"{prefix}-operator")


def test_an_older_cluster_is_refused(helm: Helm) -> None:
    with pytest.raises(Exception, match=r"kubeVersion: >=1\.29\.0-0"):
        helm.render(kubernetes="1.28.9")
    assert helm.render(kubernetes="1.29.0")
    assert helm.render(kubernetes="v1.29.15-eks-4096722")


def test_images_take_registry_tag_and_digest(helm: Helm) -> None:
    objects = helm.render("--values", CHART / "ci" / "images-values.yaml")
    [container] = find_object(objects, "Deployment")["spec"]["template"]["spec"]["containers"]
    digest = "sha256:" + "0123456789abcdef" * 4
    registry = "registry.example.com:5000/team"
    assert container["image"] == f"{registry}/custom/reveal-operator:1.2.3@{digest}"
    assert container["imagePullPolicy"] == "Always"
    flags = container["args"]
    assert f"--collector-image={registry}/reveal-collector:1.2.4-hotfix" in flags
    assert f"--analyzer-image={registry}/reveal-analyzer:1.2.3" in flags
    assert [flag for flag in flags if flag.startswith("--image-pull-secret=")] == [
        "--image-pull-secret=regcred", "--image-pull-secret=other",
    ]  # fmt: skip
    assert find_object(helm.render(), "Deployment")["spec"]["template"]["spec"]["containers"][0][
        "image"
    ] == (f"reveal-operator:{VERSION}")


def test_only_a_single_operator_runs(helm: Helm) -> None:
    spec = find_object(helm.render(), "Deployment")["spec"]
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})


def test_a_change_of_rights_restarts_the_operator(helm: Helm) -> None:
    def checksum(*flags: str) -> Any:
        template = find_object(helm.render(*flags), "Deployment")["spec"]["template"]
        return template["metadata"]["annotations"]["checksum/rbac"]

    assert checksum() == checksum()
    assert checksum() != checksum("--set", "rbac.create=false")


def test_the_evaluation_redis_keeps_its_password_from_command_lines(helm: Helm) -> None:
    objects = helm.render("--set", "evaluationRedis.enabled=true")
    others = [each for each in objects if each["kind"] != "Secret"]
    users = find_object(objects, "Secret", "reveal-evaluation-redis")["stringData"]["users.acl"]
    for name in ("reveal-evaluation-redis", "reveal-redis-collector"):
        password = find_object(objects, "Secret", name)["stringData"]["password"]
        assert len(password) == 32
        assert password not in yaml.safe_dump(others)
        assert password not in users
    redis = find_object(objects, "Deployment", "reveal-evaluation-redis")
    args = redis["spec"]["template"]["spec"]["containers"][0]["args"]
    assert args[args.index("--maxmemory-policy") + 1] == "noeviction"
    operator = find_object(objects, "Deployment", "reveal-operator")["spec"]["template"]["spec"]
    assert {
        "--redis-url=redis://reveal-evaluation-redis.reveal-system.svc:6379/0",
        "--redis-credentials-secret=reveal-evaluation-redis",
        "--redis-collector-credentials-secret=reveal-redis-collector",
    } <= set(operator["containers"][0]["args"])


def test_no_probe_needs_a_shell(helm: Helm) -> None:
    objects = helm.render("--set", "evaluationRedis.enabled=true")
    for name in ("reveal-operator", "reveal-evaluation-redis"):
        deployment = find_object(objects, "Deployment", name)
        assert len(probe_actions(deployment)) >= 2
        assert shell_probes(deployment) == []


def test_extra_objects_are_templates(helm: Helm) -> None:
    objects = helm.render("--values", CHART / "ci" / "extra-objects-values.yaml")
    assert (
        find_object(objects, "ConfigMap", "reveal-hypotheses")["metadata"]["namespace"] == NAMESPACE
    )
    assert find_object(objects, "ConfigMap", "reveal-extra")


def test_optional_objects_are_off_by_default(helm: Helm) -> None:
    assert kinds(helm.render()).isdisjoint(
        {
            "ServiceMonitor", "PodMonitor", "PrometheusRule", "ConfigMap", "NetworkPolicy",
            "PodDisruptionBudget", "Secret", names.PROFILE_KIND,
        }
    )  # fmt: skip


def test_a_disruption_budget_never_blocks_a_drain(helm: Helm) -> None:
    budget = find_object(
        helm.render("--set", "podDisruptionBudget.enabled=true"), "PodDisruptionBudget"
    )
    assert budget["spec"]["maxUnavailable"] == 1
    assert "minAvailable" not in budget["spec"]
