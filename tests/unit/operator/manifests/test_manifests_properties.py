"""Properties of the owned objects of any accepted profile."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from reveal_contract.kube.names import (
    ANNOTATION_SETTINGS,
    LABEL_COMPONENT,
    LABEL_MANAGED_BY,
    LABEL_NAME,
    LABEL_PROFILE,
    METRICS_PORT,
    child_name,
)
from reveal_contract.origin import AUDIENCE
from reveal_contract.redis_address import parse_url
from reveal_contract.settings import AnalyzerSettings, CollectorSettings
from reveal_operator.manifests import owned_manifests
from reveal_operator.settings import analyzer_settings, collector_settings
from reveal_operator.spec import NODE_IN_TOKENS_MINOR, SpecError, parse
from support.profile_factory import DEFAULTS, NAMES_OF_PROFILES, SPECS, built, container, profile
from support.property_tests import examples

LABEL = re.compile(r"([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?\Z")
DNS_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\Z")
DNS_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?\Z")


def named(found: dict[str, Any]) -> dict[str, Any]:
    """Return the volumes of a workload by name."""
    return {each["name"]: each for each in found["spec"]["template"]["spec"]["volumes"]}


def environment(child: dict[str, Any]) -> dict[str, Any]:
    return {each["name"]: each for each in container(child)["env"]}


@given(SPECS, NAMES_OF_PROFILES)
@examples(60)
def test_settings_survive_the_way_to_the_processes(spec: dict[str, Any], name: str) -> None:
    parsed = parse(profile(spec, name))
    by_kind = {child["kind"]: child for child in owned_manifests(parsed, DEFAULTS)}
    files = by_kind["ConfigMap"]["data"]
    url = environment(by_kind["DaemonSet"])["REVEAL_REDIS_URL"]["value"]
    assert parse_url(url).tls == ("redis" in spec)
    of_node = {"node": "n1", "redisUrl": url}
    collector = CollectorSettings.from_mapping({**json.loads(files["collector.json"]), **of_node})
    assert collector == collector_settings(parsed, "n1", url)
    analyzer = AnalyzerSettings.from_mapping(
        {**json.loads(files["analyzer.json"]), "redisUrl": url}
    )
    assert analyzer == analyzer_settings(parsed, url)
    # per-pod values must not stand in the file that all pods share
    assert AnalyzerSettings.from_json(files["analyzer.json"]).redis_url == ""
    assert not {"node", "redisUrl"} & json.loads(files["collector.json"]).keys()


@given(SPECS, NAMES_OF_PROFILES)
@examples(60)
def test_selectors_find_the_pods_and_names_fit(spec: dict[str, Any], name: str) -> None:
    owned = owned_manifests(parse(profile(spec, name)), DEFAULTS)
    assert len({(child["kind"], child["metadata"]["name"]) for child in owned}) == len(owned)
    for child in owned:
        meta = child["metadata"]
        assert DNS_LABEL.match(meta["name"])
        assert meta["namespace"] == DEFAULTS.namespace
        assert meta["labels"][LABEL_NAME] == "reveal"
        assert meta["labels"][LABEL_MANAGED_BY] == "reveal-operator"
        assert meta["labels"][LABEL_PROFILE] == name
        assert all(LABEL.match(value) for value in meta["labels"].values())
        (owner,) = meta["ownerReferences"]
        assert (owner["kind"], owner["name"]) == ("RevealProfile", name)
        assert (owner["controller"], owner["blockOwnerDeletion"]) == (True, False)
        template = child.get("spec", {}).get("template")
        if template is not None:
            assert child["spec"]["selector"]["matchLabels"] == template["metadata"]["labels"]
            assert (
                template["metadata"]["labels"][LABEL_COMPONENT] == meta["labels"][LABEL_COMPONENT]
            )
    selectors = [json.dumps(child["spec"]["selector"]) for child in owned[1:3]]
    assert len(set(selectors)) == 2  # neither workload takes the other's pods


@given(SPECS)
@examples(60)
def test_every_mount_has_its_volume_and_all_of_the_host_is_read_only(spec: dict[str, Any]) -> None:
    by_kind = built(spec)
    for kind in ("DaemonSet", "Deployment"):
        volumes, mounts = named(by_kind[kind]), container(by_kind[kind])["volumeMounts"]
        assert {each["name"] for each in mounts} == set(volumes)
        assert len({each["mountPath"] for each in mounts}) == len(mounts)
        writable = [each["name"] for each in mounts if not each.get("readOnly")]
        has_folder = kind == "Deployment" and "claimName" in spec.get("evidence", {})
        assert writable == (["run", "evidence"] if has_folder else ["run"])
        assert volumes["run"]["emptyDir"]["medium"] == "Memory"
        assert container(by_kind[kind])["securityContext"]["readOnlyRootFilesystem"] is True
        on_host = [each for each in mounts if "hostPath" in volumes[each["name"]]]
        assert kind == "DaemonSet" or not on_host
        for each in on_host:
            path = volumes[each["name"]]["hostPath"]["path"]
            assert each["mountPath"] == f"/host{path}"
            assert each["recursiveReadOnly"] == "IfPossible"


@given(SPECS)
@examples(40)
def test_the_same_profile_gives_the_same_manifests_in_the_same_order(spec: dict[str, Any]) -> None:
    texts = [json.dumps(owned_manifests(parse(profile(spec)), DEFAULTS)) for _ in range(2)]
    assert texts[0] == texts[1]


@given(SPECS, st.integers(29, 40))
@examples(40)
def test_no_field_goes_to_an_api_server_that_does_not_know_it(
    spec: dict[str, Any], minor: int
) -> None:
    proof = spec.get("analyzer", {}).get("originProof")
    assume(minor >= NODE_IN_TOKENS_MINOR or proof != "Required")  # it is refused there
    text = json.dumps(built(spec, kubernetes_minor=minor))
    assert (minor >= 30) == ("recursiveReadOnly" in text)
    assert minor >= 30 or "appArmorProfile" not in text
    assert minor < 30 or "container.apparmor" not in text


def test_only_several_analyzers_have_a_disruption_budget() -> None:
    single, several = built(), built({"analyzer": {"replicas": 2}})
    assert "PodDisruptionBudget" not in single
    budget = several["PodDisruptionBudget"]["spec"]
    workload = several["Deployment"]["spec"]
    assert budget["selector"] == workload["selector"]
    (spread,) = workload["template"]["spec"]["topologySpreadConstraints"]
    assert spread["labelSelector"] == workload["selector"]
    assert spread["whenUnsatisfiable"] == "ScheduleAnyway"
    # pods that have learned keep running when the number of replicas changes
    assert workload["template"] == single["Deployment"]["spec"]["template"]


@pytest.mark.parametrize(
    ("spec", "rolled"),
    [
        ({"collector": {"maxSubjects": 5}}, ["DaemonSet"]),
        ({"analyzer": {"sensitivity": "High"}}, ["Deployment"]),
        ({"mode": "Observe"}, ["Deployment"]),
        ({"reporting": {"ttlSecondsAfterResolved": 5, "maxReports": 9}}, []),
        ({"paused": True}, []),
    ],
)
def test_changed_settings_roll_the_pods_that_read_them(
    spec: dict[str, Any], rolled: list[str]
) -> None:
    before, after = built(), built(spec)
    annotations = {
        kind: [by_kind[kind]["spec"]["template"]["metadata"]["annotations"][ANNOTATION_SETTINGS]
               for by_kind in (before, after)]
        for kind in ("DaemonSet", "Deployment")
    }  # fmt: skip
    assert [kind for kind, (old, new) in annotations.items() if old != new] == rolled


def test_the_selector_depends_on_the_name_alone() -> None:
    """The API server refuses a changed selector, so no edit of a profile may cause one."""
    everything = {
        "nodeSelector": {"a": "b"}, "mode": "Observe", "collector": {"privilege": "Capabilities"},
        "analyzer": {"replicas": 9, "mode": "Paper"}, "redis": {"url": "redis://other"},
    }  # fmt: skip
    other = replace(DEFAULTS, collector_image="x", analyzer_image="y", redis_url="redis://r")
    for kind in ("DaemonSet", "Deployment"):
        plain = built()[kind]["spec"]["selector"]
        assert built(everything, **vars(other))[kind]["spec"]["selector"] == plain


def test_gpu_nodes_are_chosen_unless_the_profile_chooses() -> None:
    pod = built()["DaemonSet"]["spec"]["template"]["spec"]
    required = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    keys = [term["matchExpressions"][0]["key"] for term in required["nodeSelectorTerms"]]
    assert "nvidia.com/gpu.present" in keys
    assert "feature.node.kubernetes.io/pci-10de.present" in keys
    assert pod["tolerations"] == [
        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
    ]
    chosen = built({"nodeSelector": {"a": "b"}, "tolerations": []})
    pod = chosen["DaemonSet"]["spec"]["template"]["spec"]
    assert pod["nodeSelector"] == {"a": "b"}
    assert "affinity" not in pod
    assert "tolerations" not in pod


def test_a_metrics_port_is_a_host_port() -> None:
    assert "ports" not in container(built()["DaemonSet"])
    collector = container(built({"collector": {"metricsPort": 9177}})["DaemonSet"])
    assert collector["ports"] == [
        {"name": "metrics", "containerPort": 9177, "hostPort": 9177, "protocol": "TCP"}
    ]
    analyzer = container(built()["Deployment"])
    assert analyzer["ports"][0]["containerPort"] == METRICS_PORT


def test_a_secret_restricts_who_may_read_metrics() -> None:
    by_kind = built({"collector": {"metricsPort": 9177}}, metrics_secret="reveal-metrics")
    for kind, file in (("DaemonSet", "collector.json"), ("Deployment", "analyzer.json")):
        settings = json.loads(by_kind["ConfigMap"]["data"][file])
        mounts = container(by_kind[kind])["volumeMounts"]
        mounted = {each["mountPath"]: each["name"] for each in mounts}
        name = mounted[settings["metricsAccessFolder"]]
        (volume,) = (
            each for each in by_kind[kind]["spec"]["template"]["spec"]["volumes"]
            if each["name"] == name
        )  # fmt: skip
        assert volume["secret"] == {"secretName": "reveal-metrics"}
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container(by_kind["Deployment"])[probe]["httpGet"]["scheme"] == "HTTPS"


def test_collectors_without_metrics_do_not_have_the_secret() -> None:
    by_kind = built(metrics_secret="reveal-metrics")
    assert "reveal-metrics" not in json.dumps(by_kind["DaemonSet"])
    assert json.loads(by_kind["ConfigMap"]["data"]["collector.json"])["metricsAccessFolder"] == ""


def test_redis_credentials_come_from_secrets_and_tls_is_in_the_address() -> None:
    by_kind = built({"redis": {
        "url": "rediss://r:6380/1",
        "tls": {"caSecretRef": {"name": "ca", "key": "root.pem"}},
        "credentialsSecretRef": {"name": "login", "passwordKey": "word"},
    }})  # fmt: skip
    for kind in ("DaemonSet", "Deployment"):
        known = environment(by_kind[kind])
        address = parse_url(known["REVEAL_REDIS_URL"]["value"])
        assert address.ssl_ca_certs == "/etc/reveal-redis/ca.crt"
        assert (address.username, address.password, address.database) == ("", "", 1)
        user = known["REVEAL_REDIS_USERNAME"]["valueFrom"]["secretKeyRef"]
        assert user == {"name": "login", "key": "username", "optional": True}
        word = known["REVEAL_REDIS_PASSWORD"]["valueFrom"]["secretKeyRef"]
        assert word == {"name": "login", "key": "word"}
        authority = named(by_kind[kind])["redis-authority"]["secret"]
        assert authority == {"secretName": "ca", "items": [{"key": "root.pem", "path": "ca.crt"}]}


def test_collectors_can_have_a_user_of_redis_of_their_own() -> None:
    """Their password is on every node; theirs cannot read, nor run scripts."""
    by_kind = built({"redis": {
        "url": "rediss://r:6380/1",
        "credentialsSecretRef": {"name": "all-rights"},
        "collectorCredentialsSecretRef": {
            "name": "few-rights", "usernameKey": "user", "passwordKey": "word",
        },
    }})  # fmt: skip
    secrets = {
        kind: environment(by_kind[kind])["REVEAL_REDIS_USERNAME"]["valueFrom"]["secretKeyRef"]
        for kind in ("DaemonSet", "Deployment")
    }
    assert secrets["DaemonSet"] == {"name": "few-rights", "key": "user", "optional": True}
    assert secrets["Deployment"] == {"name": "all-rights", "key": "username", "optional": True}
    word = environment(by_kind["DaemonSet"])["REVEAL_REDIS_PASSWORD"]["valueFrom"]["secretKeyRef"]
    assert word == {"name": "few-rights", "key": "word"}
    assert "all-rights" not in json.dumps(by_kind["DaemonSet"])


def origin_of(proof: str, minor: int = 30) -> tuple[dict[str, Any] | None, str, str]:
    """Return the volume of the token, the collector's setting and the analyzer's."""
    by_kind = built({"analyzer": {"originProof": proof}}, kubernetes_minor=minor)
    files = by_kind["ConfigMap"]["data"]
    collector = CollectorSettings.from_mapping(
        {**json.loads(files["collector.json"]), "node": "n", "redisUrl": "redis://r"}
    )
    mounts = {each["name"] for each in container(by_kind["DaemonSet"])["volumeMounts"]}
    volume = named(by_kind["DaemonSet"]).get("origin")
    assert ("origin" in mounts) == (volume is not None)
    analyzer = AnalyzerSettings.from_json(files["analyzer.json"])
    return volume, collector.origin_token_file, analyzer.origin_proof


@pytest.mark.parametrize("proof", ["Preferred", "Required"])
def test_collectors_have_a_token_that_proves_their_node(proof: str) -> None:
    volume, file, setting = origin_of(proof)
    assert volume is not None
    [source] = volume["projected"]["sources"]
    assert source["serviceAccountToken"]["audience"] == AUDIENCE
    assert file.endswith(f"/{source['serviceAccountToken']['path']}")
    assert setting == proof.lower()


@pytest.mark.parametrize(("proof", "minor"), [("Off", 30), ("Off", 29), ("Preferred", 29)])
def test_no_token_is_mounted_that_cannot_be_reviewed(proof: str, minor: int) -> None:
    """Before 1.30 the API server does not say of which node a token is."""
    assert origin_of(proof, minor) == (None, "", "off")


def test_a_proof_cannot_be_required_of_an_older_api_server() -> None:
    with pytest.raises(SpecError, match=r"originProof: Required needs Kubernetes 1\.30"):
        origin_of("Required", 29)


def test_a_profile_with_a_redis_of_its_own_gets_nothing_of_the_operators() -> None:
    by_kind = built({"redis": {"url": "redis://own"}}, redis_ca_secret="theirs")
    assert "theirs" not in json.dumps(by_kind)
    assert "REVEAL_REDIS_PASSWORD" not in environment(by_kind["DaemonSet"])


def test_certificates_are_unverified_only_on_request() -> None:
    skipping = built({"redis": {"url": "rediss://r", "tls": {"insecureSkipVerify": True}}})
    url = environment(skipping["DaemonSet"])["REVEAL_REDIS_URL"]["value"]
    assert parse_url(url).ssl_cert_reqs == "none"
    strict = built({"redis": {"url": "rediss://r"}})
    url = environment(strict["DaemonSet"])["REVEAL_REDIS_URL"]["value"]
    assert parse_url(url).ssl_cert_reqs == "required"


def test_the_analyzer_runs_as_nobody_and_is_named_after_its_pod() -> None:
    deployment = built({"analyzer": {"hypothesesConfigMapRef": {"name": "causes"}}})["Deployment"]
    pod, analyzer = deployment["spec"]["template"]["spec"], container(deployment)
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert analyzer["args"][analyzer["args"].index("--owner") + 1] == "$(REVEAL_POD_NAME)"
    assert environment(deployment)["REVEAL_POD_NAME"]["valueFrom"]["fieldRef"] == {
        "fieldPath": "metadata.name"
    }
    assert named(deployment)["hypotheses"]["configMap"] == {"name": "causes"}
    # without a writable folder for temporary files the libraries do not load
    assert environment(deployment)["TMPDIR"]["value"] == "/run/reveal"


def test_profile_names_with_dots_make_distinct_names() -> None:
    names = {
        child["metadata"]["name"]
        for name in ("a.b", "a-b")
        for child in owned_manifests(parse(profile(name=name)), DEFAULTS)
    }
    assert len(names) == 6
    assert child_name("collector", "a-b") in names
    assert all(DNS_NAME.match(name) for name in names)
