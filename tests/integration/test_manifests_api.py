"""The children on a real API server: taken as they are, under the rules of Pod Security."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from reveal_operator.manifests import owned_manifests
from reveal_operator.spec import parse
from support.api_server import ApiError, Kube, unique
from support.profile_factory import DEFAULTS, NAMES_OF_PROFILES, PROFILES, ROOT, SPECS, profile
from support.property_tests import examples

CRDS = sorted((ROOT / "crds").glob("*.yaml"))


@pytest.fixture(scope="module")
def enforced(kube: Kube) -> Iterator[dict[str, str]]:
    """A namespace a level of Pod Security; profiles are known."""
    kube.install(*CRDS)
    result = {level: unique(level) for level in ("privileged", "restricted")}
    for level, name in result.items():
        labels = {"pod-security.kubernetes.io/enforce": level}
        meta = {"name": name, "labels": labels}
        kube.create({"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
        for component in ("collector", "analyzer"):
            account = {"name": f"reveal-{component}", "namespace": name}
            kube.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account})
    yield result
    for name in result.values():
        kube.delete({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


def manifests_in(namespace: str, name: str) -> list[dict[str, Any]]:
    return list(owned_manifests(parse(PROFILES[name]), replace(DEFAULTS, namespace=namespace)))


def pod_of(child: dict[str, Any]) -> dict[str, Any]:
    """A pod as the controllers would make it of this workload."""
    template, namespace = child["spec"]["template"], child["metadata"]["namespace"]
    meta = {**template["metadata"], "name": unique("pod"), "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": template["spec"]}


@pytest.mark.parametrize("name", PROFILES)
def test_strict_server_side_apply_accepts_every_manifest(
    kube: Kube, enforced: dict[str, str], name: str
) -> None:
    expected = manifests_in(enforced["privileged"], name)
    applied = kube.apply(expected, manager="reveal-operator", dry_run=True)
    assert [item["kind"] for item in applied] == [item["kind"] for item in expected]
    for before, after in zip(expected, applied, strict=True):
        assert includes(after, before) == []


@pytest.mark.parametrize("name", PROFILES)
def test_analyzers_fit_pod_security_restricted(
    kube: Kube, enforced: dict[str, str], name: str
) -> None:
    _, _, deployment, *_ = manifests_in(enforced["restricted"], name)
    pod = pod_of(deployment)
    assert kube.apply(pod, dry_run=True)[0]["spec"]["serviceAccountName"] == "reveal-analyzer"


@pytest.mark.parametrize("name", PROFILES)
def test_collectors_need_pod_security_privileged(
    kube: Kube, enforced: dict[str, str], name: str
) -> None:
    _, daemonset, *_ = manifests_in(enforced["restricted"], name)
    with pytest.raises(ApiError, match='violates PodSecurity "restricted') as refused:
        kube.apply(without_class(pod_of(daemonset)), dry_run=True)
    assert refused.value.status == 403
    _, daemonset, *_ = manifests_in(enforced["privileged"], name)
    taken = kube.apply(without_class(pod_of(daemonset)), dry_run=True)[0]["spec"]
    assert taken["containers"][0]["name"] == "collector"


def test_a_second_apply_changes_nothing(kube: Kube, enforced: dict[str, str]) -> None:
    """What we send is what is kept: no field that the API server writes differently."""
    expected = manifests_in(enforced["privileged"], "three-replicas")
    first = kube.apply(expected, manager="reveal-operator")
    second = kube.apply(expected, manager="reveal-operator")
    versions = [[item["metadata"]["resourceVersion"] for item in run] for run in (first, second)]
    assert versions[0] == versions[1]
    assert [item["metadata"].get("generation") for item in second] == [None, 1, 1, 1]


def test_profiles_parse_the_same_after_the_api_server_stored_them(
    kube: Kube, enforced: dict[str, str]
) -> None:
    for name, written in PROFILES.items():
        meta = {"name": unique(name)}
        stored = kube.apply({**written, "metadata": meta}, dry_run=True)[0]
        again = parse({**stored, "metadata": written["metadata"]})
        assert again == parse(written)


@given(SPECS, NAMES_OF_PROFILES)
@examples(25)
def test_manifests_of_any_accepted_profile_are_accepted(
    kube: Kube, enforced: dict[str, str], spec: dict[str, Any], name: str
) -> None:
    written = profile(spec, name)
    stored = kube.apply({**written, "metadata": {"name": name}}, dry_run=True)[0]
    expected = parse({**stored, "metadata": written["metadata"]})
    kube.apply(
        owned_manifests(expected, replace(DEFAULTS, namespace=enforced["privileged"])), dry_run=True
    )


def without_class(pod: dict[str, Any]) -> dict[str, Any]:
    """A RuntimeClass has to exist, and belongs to the cluster."""
    spec = {key: value for key, value in pod["spec"].items() if key != "runtimeClassName"}
    return {**pod, "spec": spec}


def includes(found: Any, expected: Any, path: str = "") -> list[str]:
    """Where ``wanted`` is not kept as it was; more than it may be there."""
    if isinstance(expected, dict) and isinstance(found, dict):
        return [
            include
            for key, value in expected.items()
            for include in includes(found.get(key), value, f"{path}.{key}")
        ]
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        pairs = enumerate(zip(found, expected, strict=True))
        return [include for index, pair in pairs for include in includes(*pair, f"{path}[{index}]")]
    return [] if found == expected or expected is False else [path]
