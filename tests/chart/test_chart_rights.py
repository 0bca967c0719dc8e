"""Rights: as few as do, by name, and of nobody else."""

from __future__ import annotations

import pytest

from support.helm_chart import CHART, NAMESPACE, Helm, HelmError, find_object, rules

COMPONENTS = ("operator", "collector", "analyzer")
VERBS = {"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}
# what would let a component become another one, or read what is not its business
SENSITIVE = {"secrets", "serviceaccounts", "roles", "clusterroles", "rolebindings", "pods/exec"}


def granted(helm: Helm, role: str, *flags: str, kind: str = "ClusterRole") -> set[str]:
    """``verb resource`` of every rule of a role."""
    found = find_object(helm.render(*flags), kind, role)["rules"]
    return {
        f"{verb} {resource}"
        for rule in found for resource in rule["resources"] for verb in rule["verbs"]
    }  # fmt: skip


def test_no_role_uses_a_wildcard_or_touches_secrets(helm: Helm) -> None:
    checked = 0
    for role, rule in rules(helm.render("--set", "nodeConditions.allowed=true")):
        checked += 1
        name = role["metadata"]["name"]
        assert set(rule["verbs"]) <= VERBS, name
        assert "*" not in rule["resources"] + rule["apiGroups"], name
        assert SENSITIVE.isdisjoint(rule["resources"]), name
        assert not any(path for path in rule.get("nonResourceURLs", ())), name
    assert checked > 10


def test_workloads_are_written_in_the_operators_namespace_only(helm: Helm) -> None:
    assert not any(
        resource in {"daemonsets", "deployments", "configmaps", "poddisruptionbudgets"}
        for role, rule in rules(helm.render())
        for resource in rule["resources"]
        if role["kind"] == "ClusterRole"
    )
    roles = [each for each in helm.render() if each["kind"] == "Role"]
    assert {role["metadata"]["namespace"] for role in roles} == {NAMESPACE}
    writing = {"create", "patch", "update", "delete"}
    for role in roles:
        if role["metadata"]["name"] != "reveal-operator":
            resources = {r for each in role["rules"] for r in each["resources"]
                         if writing & set(each["verbs"])}  # fmt: skip
            assert resources <= {"pods/portforward"}


def test_a_collector_may_only_read_pods(helm: Helm) -> None:
    assert granted(helm, "reveal-collector") == {"list pods", "watch pods"}


def test_collectors_without_the_right_to_list_pods_have_no_rights(helm: Helm) -> None:
    without = ("--set", "rbac.collectorsListPods=false")
    names = {each["metadata"]["name"] for each in helm.render(*without) if "rules" in each}
    assert "reveal-collector" not in names and "reveal-analyzer" in names
    extra = granted(helm, "reveal-analyzer", *without) - granted(helm, "reveal-analyzer")
    assert extra == {"list pods"}


def test_a_profile_whose_collectors_would_list_pods_needs_that_right(helm: Helm) -> None:
    without = ("--set", "rbac.collectorsListPods=false", "--set-json")
    with pytest.raises(HelmError, match=r"set collector\.podSource to Logs there"):
        helm.render(*without, 'profiles={"p":{}}')
    helm.render(*without, 'profiles={"p":{"collector":{"podSource":"Logs"}}}')


def test_analyzers_may_change_nodes_only_where_it_is_allowed(helm: Helm) -> None:
    extra = granted(helm, "reveal-analyzer", "--set", "nodeConditions.allowed=true") - granted(
        helm, "reveal-analyzer"
    )
    assert extra == {"patch nodes/status"}


def test_reports_are_written_by_analyzers_alone(helm: Helm) -> None:
    writers = {
        role["metadata"]["name"]
        for role, rule in rules(helm.render())
        if {"create", "patch", "update"} & set(rule["verbs"])
        and any(resource.startswith("anomalyreports") for resource in rule["resources"])
    }
    assert writers == {"reveal-analyzer", "reveal-silence"}
    # their status, which is what was found, is a subresource
    assert granted(helm, "reveal-silence") == {
        f"{verb} anomalyreports" for verb in ("get", "list", "watch", "patch")
    }


def test_each_account_has_its_own_binding(helm: Helm) -> None:
    objects = helm.render("--values", CHART / "ci" / "accounts-values.yaml")
    accounts = {each["metadata"]["name"] for each in objects if each["kind"] == "ServiceAccount"}
    assert accounts == {"reveal-operator", "reveal-collector", "anomaly-writer"}
    for component in COMPONENTS:
        binding = find_object(objects, "ClusterRoleBinding", f"reveal-{component}")
        assert binding["roleRef"]["name"] == f"reveal-{component}"
        [subject] = binding["subjects"]
        expected = "anomaly-writer" if component == "analyzer" else f"reveal-{component}"
        assert (subject["name"], subject["namespace"]) == (expected, NAMESPACE)


def test_pods_get_a_token_only_where_they_ask_for_it(helm: Helm) -> None:
    objects = helm.render()
    for each in objects:
        if each["kind"] == "ServiceAccount":
            assert each["automountServiceAccountToken"] is False
    operator = find_object(objects, "Deployment")["spec"]["template"]["spec"]
    assert operator["automountServiceAccountToken"] is True


def test_user_roles_include_the_custom_resources_on_request_only(helm: Helm) -> None:
    prefix = "rbac.authorization.k8s.io/aggregate-to-"
    objects = helm.render("--set", "rbac.aggregateToUserRoles=true")
    view = find_object(objects, "ClusterRole", "reveal-view")["metadata"]["labels"]
    assert {f"{prefix}{role}" for role in ("view", "edit", "admin")} <= view.keys()
    for role in ("edit", "silence"):
        labels = find_object(objects, "ClusterRole", f"reveal-{role}")["metadata"]["labels"]
        assert {f"{prefix}{into}" for into in ("edit", "admin")} <= labels.keys()
        assert f"{prefix}view" not in labels
    without = helm.render()  # whoever writes profiles is root on the nodes
    for role in ("view", "edit", "silence"):
        labels = find_object(without, "ClusterRole", f"reveal-{role}")["metadata"]["labels"]
        assert not any(label.startswith(prefix) for label in labels)


def test_no_rbac_objects_are_created_if_disabled(helm: Helm) -> None:
    objects = helm.render("--values", CHART / "ci" / "no-rights-values.yaml")
    assert not list(rules(objects))
    assert not any(each["kind"].endswith("Binding") for each in objects)


def test_samples_are_read_by_forwarding_ports_of_pods_only(helm: Helm) -> None:
    role = find_object(helm.render(), "Role", "reveal-samples")
    rights = {
        (r, verb) for each in role["rules"] for r in each["resources"] for verb in each["verbs"]
    }
    assert rights == {
        ("pods", "list"), ("pods/portforward", "get"), ("pods/portforward", "create"),
    }  # fmt: skip
