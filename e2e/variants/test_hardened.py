"""All that can be closed is: the kernel says so of each process, and a fault is still found.

Pod Security has one level a namespace, and the operator makes collectors in its own: so that is
``privileged``, for them alone. What else stands there fits ``restricted``, as the API server says.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from contextlib import suppress

import pytest

from reveal_contract.kube.names import LABEL_COMPONENT, METRICS_PORT
from support.api_server import ApiError, Kube, Object, unique
from support.cluster_release import ENFORCE
from support.fault_run import throttled_run
from support.faulty_pods import THROTTLED
from support.hardened_release import COLLECTOR_METRICS_PORT, Hardened
from support.helm_chart import NAMESPACE
from support.pod_processes import Process, main_process
from support.tls_redis import PORT, USER

pytestmark = pytest.mark.timeout(900)

SECCOMP_FILTER = "2"  # proc_pid_status(5)
NOBODY = "65532"
CAPABILITIES = {"SYS_PTRACE", "DAC_READ_SEARCH", "SYS_NICE"}


def confined(process: Process) -> None:
    """What holds of every process of the release, collectors included; it is shown, too."""
    listed = ", ".join(process.capabilities) or "none"
    fields = (process.status(name) for name in ("Uid", "NoNewPrivs", "Seccomp"))
    sys.stdout.write(f"| {process.name} | {listed} | {' | '.join(fields)} | read-only |\n")
    assert process.status("Seccomp") == SECCOMP_FILTER
    assert process.status("NoNewPrivs") == "1"
    assert process.read_only_root


@pytest.mark.parametrize("component", ["operator", "analyzer"])
def test_operator_and_analyzer_are_confined(hardened: Hardened, component: str) -> None:
    for process in map(main_process, hardened.pods(component)):
        confined(process)
        assert process.capabilities == ()
        assert set(process.status("Uid").split()) == {NOBODY}


def test_collectors_have_three_capabilities(hardened: Hardened) -> None:
    found = hardened.pods("collector")
    assert len(found) == len(hardened.watched.cluster.nodes)
    for process in map(main_process, found):
        confined(process)
        assert set(process.capabilities) == CAPABILITIES


def test_collectors_have_no_access_to_the_api(hardened: Hardened) -> None:
    for pod in hardened.pods("collector"):
        assert pod["spec"]["automountServiceAccountToken"] is False
        mounts = {each["mountPath"] for each in pod["spec"]["containers"][0]["volumeMounts"]}
        assert not any(mount.startswith("/var/run/secrets/kubernetes.io") for mount in mounts)
    for verb, resource in (("list", "pods"), ("get", "nodes"), ("list", "secrets")):
        assert not _may(hardened.watched.kube, "reveal-collector", verb, resource)
    assert _may(hardened.watched.kube, "reveal-analyzer", "list", "pods")


def _may(kube: Kube, account: str, verb: str, resource: str) -> bool:
    """What the API server says of a ServiceAccount of the release, for all namespaces."""
    review: Object = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": f"system:serviceaccount:{NAMESPACE}:{account}",
            "resourceAttributes": {"verb": verb, "resource": resource},
        },
    }
    path = kube.path(review["apiVersion"], review["kind"])
    allowed: bool = kube.request("POST", path, review)["status"]["allowed"]
    return allowed


@pytest.fixture
def restricted(hardened: Hardened) -> Iterator[str]:
    name = unique("restricted")
    labels = {ENFORCE: "restricted"}
    manifest = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": labels},
    }
    hardened.watched.kube.create(manifest)
    yield name
    hardened.watched.kube.delete(manifest)


def test_only_collectors_need_a_privileged_namespace(hardened: Hardened, restricted: str) -> None:
    def admitted(component: str) -> list[Object]:
        pod = _again(hardened.pods(component)[0], restricted)
        return hardened.watched.kube.apply(pod, dry_run=True)

    assert admitted("operator") and admitted("analyzer")
    with pytest.raises(ApiError, match="violates PodSecurity") as refused:
        admitted("collector")
    assert "hostPath" in str(refused.value) or "host namespaces" in str(refused.value)


def _again(pod: Object, namespace: str) -> Object:
    """The pod as one that is to be made in another namespace, whose account stands for its own."""
    spec = {key: value for key, value in pod["spec"].items() if key != "nodeName"}
    spec |= {"serviceAccountName": "default", "serviceAccount": "default"}
    about = {"name": "again", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": spec}


def test_redis_is_used_over_tls_by_its_user_only(hardened: Hardened) -> None:
    clients = hardened.redis.observer.client_list()
    ours = [client for client in clients if client["user"] != "observer"]
    assert {item["user"] for item in ours} == {USER}
    # a collector a node, and the analyzers
    assert len(ours) > len(hardened.watched.cluster.nodes)
    assert not _answered(hardened.redis.pod["status"]["podIP"], PORT, b"PING\r\n")


def _answered(address: str, port: int, request: bytes) -> bytes:
    """What is answered to a request without TLS."""
    with suppress(ConnectionResetError), socket.create_connection((address, port), 5) as plain:
        plain.sendall(request)
        return plain.recv(65_536)
    return b""


@pytest.mark.parametrize(
    ("component", "port", "sample"),
    [
        ("operator", METRICS_PORT, b"reveal_operator_build_info"),
        ("analyzer", METRICS_PORT, b"reveal_build_info"),
        ("collector", COLLECTOR_METRICS_PORT, b"reveal_collector_build_info"),
    ],
)
def test_metrics_need_https_and_the_token(
    hardened: Hardened, component: str, port: int, sample: bytes
) -> None:
    """The pods are ready by probes of the kubelet, which has neither authority nor token."""
    for pod in hardened.pods(component):
        address = pod["status"]["podIP"]
        assert b" 401 " in hardened.metrics.scrape(address, port).splitlines()[0]
        assert sample in hardened.metrics.scrape(address, port, hardened.metrics.token)
        assert sample not in _answered(address, port, b"GET /metrics HTTP/1.0\r\n\r\n")


def test_each_network_policy_selects_its_pods(hardened: Hardened) -> None:
    """The cluster's network enforces none of them: only whom they are for can be seen here."""
    kube = hardened.watched.kube
    selected = {
        policy["metadata"]["name"]: {
            pod["metadata"]["labels"][LABEL_COMPONENT] for pod in _selected(kube, policy)
        }
        for policy in kube.items("networking.k8s.io/v1", "NetworkPolicy", NAMESPACE)
    }
    assert selected == {"reveal-operator": {"operator"}, "reveal-analyzer": {"analyzer"}}


def _selected(kube: Kube, policy: Object) -> list[Object]:
    labels = policy["spec"]["podSelector"]["matchLabels"]
    selector = ",".join(f"{key}={value}" for key, value in labels.items())
    return kube.items("v1", "Pod", NAMESPACE, selector)


def test_a_fault_has_a_single_report(hardened: Hardened, jobs: str) -> None:
    watched = hardened.watched
    with throttled_run("quota, hardened", watched, jobs, "node2") as story:
        story.start_in(jobs, THROTTLED)
