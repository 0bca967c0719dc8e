"""A Redis of one's own on real nodes: TLS only, users by ACL, in a ``restricted`` namespace."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import redis

from cluster.handle import Cluster
from support.api_server import Kube, Object, wait_for
from support.certificates import Certificate, signed
from support.cluster_release import ENFORCE
from support.helm_chart import NAMESPACE

REDIS_NAMESPACE = "reveal-redis"  # its namespace
PORT = 6380
URL = f"rediss://redis.{REDIS_NAMESPACE}.svc:{PORT}/0"
LOGIN, AUTHORITY = "redis-login", "redis-authority"  # Secrets in the release's namespace
USER = "reveal"
_LABELS = {"app": "redis"}
_OPTIONS = (
    "--port", "0", "--tls-port", str(PORT), "--tls-auth-clients", "no",
    "--tls-cert-file", "/etc/redis-tls/tls.crt", "--tls-key-file", "/etc/redis-tls/tls.key",
    "--tls-ca-cert-file", "/etc/redis-tls/ca.crt", "--aclfile", "/etc/redis-tls/users.acl",
    "--save", "", "--appendonly", "no", "--maxmemory", "64mb",
    "--maxmemory-policy", "noeviction", "--dir", "/data",
)  # fmt: skip
# the analyzers' user of docs/contributing/processes.md; collectors share it: there is one Secret
_ACL = """\
user default off
user {user} on #{password} ~reveal:* +@all -@dangerous -@admin
user observer on #{observer} ~* +@all
"""


class TlsRedis:
    """Its pod, and a user who may look at everything."""

    def __init__(self, kube: Kube, certificate: Certificate, observer: str) -> None:
        self._kube, self._certificate, self._observer = kube, certificate, observer

    @property
    def pod(self) -> Object:
        [found] = self._kube.items("v1", "Pod", REDIS_NAMESPACE)
        return found

    @property
    def observer(self) -> redis.Redis:
        """By the pod's address, which is not in the certificate."""
        return redis.Redis(
            self.pod["status"]["podIP"], PORT, username="observer", password=self._observer,
            ssl=True, ssl_ca_certs=str(self._certificate.authority), ssl_check_hostname=False,
        )  # fmt: skip


@contextmanager
def tls_redis(cluster: Cluster, folder: Path) -> Iterator[TlsRedis]:
    """Until it is left; the release's Secrets go with it."""
    kube = Kube(cluster.kubeconfig)
    certificate = signed(folder, f"DNS:redis.{REDIS_NAMESPACE}.svc")
    password, observer = secrets.token_hex(), secrets.token_hex()
    acl = _ACL.format(user=USER, password=_hash(password), observer=_hash(observer))
    namespace, *_ = placed = [
        _namespace(),
        _secret(REDIS_NAMESPACE, "redis", {
            "tls.crt": certificate.certificate.read_text(), "tls.key": certificate.key.read_text(),
            "ca.crt": certificate.authority.read_text(), "users.acl": acl,
        }),
        _service(),
        _deployment(cluster.image("reveal-redis")),
    ]  # fmt: skip
    given = [
        _secret(NAMESPACE, LOGIN, {"username": USER, "password": password}),
        _secret(NAMESPACE, AUTHORITY, {"ca.crt": certificate.authority.read_text()}),
    ]
    kube.apply([*placed, *given])
    try:
        wait_for(lambda: _ready(kube), 60, "Redis is ready")
        yield TlsRedis(kube, certificate, observer)
    finally:
        for item in (*given, namespace):
            kube.delete(item)
        gone = "the namespace of Redis is gone"
        wait_for(lambda: kube.get("v1", "Namespace", REDIS_NAMESPACE) is None, 90, gone)


def _hash(password: str) -> str:
    return sha256(password.encode()).hexdigest()


def _ready(kube: Kube) -> bool:
    deployment = kube.get("apps/v1", "Deployment", "redis", REDIS_NAMESPACE) or {}
    return bool(deployment.get("status", {}).get("readyReplicas"))


def _namespace() -> Object:
    labels = {ENFORCE: "restricted"}
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": REDIS_NAMESPACE, "labels": labels},
    }


def _secret(namespace: str, name: str, texts: dict[str, str]) -> Object:
    about = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": about, "stringData": texts}


def _service() -> Object:
    return {
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "redis", "namespace": REDIS_NAMESPACE},
        "spec": {"selector": _LABELS, "ports": [{"port": PORT}]},
    }  # fmt: skip


def _deployment(image: str) -> Object:
    return {
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "redis", "namespace": REDIS_NAMESPACE},
        "spec": {
            "selector": {"matchLabels": _LABELS},
            "template": {"metadata": {"labels": _LABELS}, "spec": _pod(image)},
        },
    }  # fmt: skip


def _pod(image: str) -> Object:
    ids: dict[str, Any] = dict.fromkeys(("runAsUser", "runAsGroup", "fsGroup"), 65532)
    return {
        "automountServiceAccountToken": False,
        "securityContext": {
            "runAsNonRoot": True, **ids, "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [{
            "name": "redis", "image": image, "command": ["redis-server", *_OPTIONS],
            "readinessProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 2},
            "securityContext": {
                "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            },
            "volumeMounts": [
                {"name": "tls", "mountPath": "/etc/redis-tls"},
                {"name": "data", "mountPath": "/data"},
            ],
        }],
        "volumes": [
            {"name": "tls", "secret": {"secretName": "redis"}}, {"name": "data", "emptyDir": {}},
        ],
    }  # fmt: skip
