"""A real API server takes all that the chart renders, field by field, and Pod Security too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster.plane import ControlPlane
from reveal_contract.kube.names import API_VERSION, PROFILE_KIND
from support.api_server import Kube, unique
from support.helm_chart import CHART, ROOT, VALUES, Helm, HelmError, pods, program

DEFINITIONS = sorted((ROOT / "crds").glob("*.yaml"))
# kinds of the Prometheus Operator: e2e/chart checks them against its definitions
FOREIGN = {"ServiceMonitor", "PodMonitor", "PrometheusRule"}


@pytest.fixture
def restricted(kube: Kube) -> Iterator[str]:
    """A namespace that takes only pods of the strictest Pod Security level."""
    name = unique("restricted")
    about = {"name": name, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}
    manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": about}
    kube.create(manifest)
    yield name
    kube.delete(manifest)


@pytest.fixture
def live(control_plane: ControlPlane, tmp_path: Path) -> Helm:
    """Helm as administrator of the API server."""
    return Helm(program(), tmp_path, control_plane.kubeconfig)


@pytest.mark.parametrize("values", VALUES, ids=lambda path: path.stem)
def test_every_object_is_accepted(kube: Kube, helm: Helm, namespace: str, values: Path) -> None:
    kube.install(*DEFINITIONS)
    known = ("--api-versions", f"{API_VERSION}/{PROFILE_KIND}")
    objects = helm.render("--values", values, *known, namespace=namespace)
    ours = [each for each in objects if each["kind"] not in FOREIGN]
    assert len(kube.apply(ours, dry_run=True)) == len(ours) > 1


def test_pods_fit_pod_security_restricted(kube: Kube, helm: Helm, restricted: str) -> None:
    objects = helm.render("--set", "evaluationRedis.enabled=true", namespace=restricted)
    observed = 0
    for number, spec in enumerate(pods(objects)):
        pod: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"pod-{number}", "namespace": restricted},
            "spec": {**spec, "serviceAccountName": "default"},
        }
        kube.apply(pod, dry_run=True)
        observed += 1
    assert observed == 3  # operator, evaluation Redis, helm test


def notes(live: Helm, namespace: str, *flags: str) -> str:
    text = live(
        "install", "reveal", CHART, "--namespace", namespace, "--dry-run=server",
        "--set", "crds.enabled=false", *flags,
    )  # fmt: skip
    return text.partition("NOTES:")[2]


def test_a_second_release_in_another_namespace_is_refused(
    kube: Kube, live: Helm, namespace: str, restricted: str
) -> None:
    (operator,) = [
        each
        for each in live.render("--set", "crds.enabled=false", namespace=restricted)
        if each["kind"] == "Deployment"
    ]
    operator["metadata"]["name"] = "earlier"  # Helm itself refuses what it did not make
    kube.create(operator)
    try:
        assert "kubectl" in notes(live, restricted)
        assert "kubectl" in notes(live, namespace, "--set", "rbac.create=false")
        with pytest.raises(HelmError, match=f"namespace {restricted} has a release of Reveal"):
            notes(live, namespace)
    finally:
        kube.delete(operator)


def test_the_notes_name_the_next_step(live: Helm, namespace: str) -> None:
    plain = notes(live, namespace)
    assert "NO REDIS" in plain
    assert "kubectl get anomalyreports" in plain
    assert '"kind": "RevealProfile"' in plain
    evaluated = notes(live, namespace, "--set", "evaluationRedis.enabled=true")
    assert "FOR EVALUATION ONLY" in evaluated
    assert "NO REDIS" not in evaluated
    secured = notes(live, namespace, "--set", "redis.url=redis://r:6379,redis.existingSecret=s")
    assert "NO REDIS" not in secured
    assert "without a password" not in secured
    assert "without a password" in notes(live, namespace, "--set", "redis.url=redis://r:6379")


def test_the_notes_warn_where_collectors_would_be_refused(live: Helm, restricted: str) -> None:
    assert 'enforces Pod Security "restricted"' in notes(live, restricted)


def test_the_notes_of_an_open_namespace_do_not(live: Helm, namespace: str) -> None:
    assert "enforces" not in notes(live, namespace)
