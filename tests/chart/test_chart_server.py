"""A real API server takes all that the chart renders, field by field, and Pod Security too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster.plane import ControlPlane
from reveal_contract.kube.names import API_VERSION, PROFILE_KIND
from support.api_server import ApiError, Kube, unique, wait_for
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


REDIS, RECEIVER = "rediss://redis.example.com:6380", "https://otel.example.com/base"
LOGIN = {"name": "our-redis"}
FORK = "registry.example.com/reveal-fork:1"


def on_redis(**fields: Any) -> dict[str, Any]:
    return {"redis": {"url": REDIS, **fields}}


def on_receiver(**fields: Any) -> dict[str, Any]:
    return {"reporting": {"otlp": {"endpoint": RECEIVER, **fields}}}


# a list of the chart, a name that it does not have, and a spec with that name
NAMED: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("images", FORK, {"collector": {"image": FORK}}),
    ("images", FORK, {"analyzer": {"image": FORK}}),
    ("hostPaths", "/opt/lustrefs", {"collector": {"extraHostPaths": [{"path": "/opt/lustrefs"}]}}),
    ("secrets", "regcred", on_redis(credentialsSecretRef={"name": "regcred"})),
    ("secrets", "regcred", on_redis(collectorCredentialsSecretRef={"name": "regcred"})),
    ("secrets", "regcred", on_redis(tls={"caSecretRef": {"name": "regcred"}})),
    ("secrets", "regcred", on_receiver(headersSecretRef={"name": "regcred"})),
    ("claims", "samples", {"evidence": {"store": "Folder", "claimName": "samples"}}),
    ("configMaps", "causes", {"analyzer": {"hypothesesConfigMapRef": {"name": "causes"}}}),
    ("addresses", "redis://evil.example.com", {"redis": {"url": "redis://evil.example.com"}}),
    ("addresses", "https://otel.example.com.evil",
     on_receiver(endpoint="https://otel.example.com.evil")),
)  # fmt: skip
PERMITTED: dict[str, Any] = {
    "collector": {
        "image": "registry.example.com/reveal:1",
        "extraHostPaths": [{"path": "/opt/lustre/lib"}],
    },
    "analyzer": {
        "image": "registry.example.com/reveal/analyzer:1",
        "hypothesesConfigMapRef": {"name": "our-causes"},
    },
    "redis": {
        "url": f"{REDIS}/1",
        "credentialsSecretRef": LOGIN,
        "collectorCredentialsSecretRef": LOGIN,
        "tls": {"caSecretRef": LOGIN},
    },
    "evidence": {"store": "Folder", "claimName": "our-samples"},
    **on_receiver(headersSecretRef=LOGIN),
}


def profile(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": API_VERSION, "kind": PROFILE_KIND, "metadata": {"name": name}, "spec": spec,
    }  # fmt: skip


@pytest.fixture
def earlier(kube: Kube) -> Iterator[dict[str, Any]]:
    """A profile that is stored before there are limits, and names what they do not permit."""
    kube.install(*DEFINITIONS)
    _, _, spec = NAMED[0]
    manifest = profile(unique("earlier"), spec)
    kube.create(manifest)
    yield manifest
    kube.delete(manifest)


@pytest.fixture
def limited(kube: Kube, helm: Helm, namespace: str) -> Iterator[None]:
    """The policy of the limits of profiles, in effect."""
    kube.install(*DEFINITIONS)
    values = CHART / "ci" / "profile-limits-values.yaml"
    objects = helm.render("--values", values, namespace=namespace)
    policies = [each for each in objects if each["kind"].startswith("ValidatingAdmissionPolicy")]
    _, _, spec = NAMED[0]
    kube.apply(policies)
    try:
        wait_for(lambda: refusal(kube, profile("seen", spec)), 60, "it is in effect")
        yield
    finally:
        for each in policies:
            kube.delete(each)
        wait_for(lambda: not refusal(kube, profile("seen", spec)), 60, "it is in effect no more")


def refusal(kube: Kube, manifest: dict[str, Any]) -> str:
    """Return why the API server refuses an object; "" if it takes it."""
    try:
        kube.apply(manifest, dry_run=True)
    except ApiError as error:
        return error.message
    return ""


def test_admission_refuses_profiles_over_their_limits(kube: Kube, limited: None) -> None:
    for kind, name, spec in NAMED:
        why = refusal(kube, profile("limited", spec))
        assert f"{name} is not permitted in profiles: name another" in why, spec
        assert f"profileLimits.{kind} of the chart" in why
    assert refusal(kube, profile("limited", PERMITTED)) == ""
    assert refusal(kube, profile("limited", {})) == ""
    assert refusal(kube, profile("limited", {"evidence": {"claimName": ""}})) == ""


def test_a_profile_from_before_its_limits_gets_labels_and_no_other_spec(
    kube: Kube, earlier: dict[str, Any], limited: None
) -> None:
    labels = {"metadata": {**earlier["metadata"], "labels": {"team": "platform"}}}
    assert refusal(kube, {**earlier, **labels}) == ""
    paused = {**earlier, "spec": {**earlier["spec"], "paused": True}}
    assert "is not permitted in profiles: name another" in refusal(kube, paused)
    assert refusal(kube, {**earlier, "spec": PERMITTED}) == ""


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
