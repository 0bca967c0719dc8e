"""A release on real nodes in which everything that can be closed is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from reveal_contract.kube.names import LABEL_COMPONENT
from support.api_server import Object
from support.cluster_release import Release, install
from support.helm_chart import NAMESPACE
from support.metrics_secret import SECRET, MetricsSecret, metrics_secret
from support.tls_redis import AUTHORITY, LOGIN, PORT, URL, TlsRedis, tls_redis

# sources of perf events, as examples/least-privilege.yaml leaves them out
_COUNTED = ["perf", "tracepoints", "pmu", "msr", "smi", "cstates", "uncore", "energy", "ledger"]
_VALUES = {
    "redis.url": URL,
    "redis.existingSecret": LOGIN,
    "redis.tls.caSecret": AUTHORITY,
    "networkPolicy.enabled": "true",
    "networkPolicy.redisPorts": f"{{{PORT}}}",
    "podDisruptionBudget.enabled": "true",
    "metrics.access.secret": SECRET,
    "rbac.collectorsListPods": "false",
}
_REPLICAS = 2
COLLECTOR_METRICS_PORT = 9477


@dataclass(frozen=True)
class Hardened:
    watched: Release
    redis: TlsRedis
    metrics: MetricsSecret

    def pods(self, component: str) -> list[Object]:
        """Those that run and are to stay."""
        labels = f"{LABEL_COMPONENT}={component}"
        found = self.watched.kube.items("v1", "Pod", NAMESPACE, labels)
        alive = [item for item in found if "deletionTimestamp" not in item["metadata"]]
        assert alive, component
        return alive


@contextmanager
def hardened_release(watched: Release, folder: Path) -> Iterator[Hardened]:
    """Until it is left; then the default release is there again."""
    cluster = watched.cluster
    of_metrics = folder / "metrics"
    of_metrics.mkdir()
    with (
        tls_redis(cluster, folder) as server,
        metrics_secret(watched.kube, of_metrics) as metrics,
    ):
        install(cluster, folder, _VALUES)
        collector = {
            "privilege": "Capabilities", "sources": {"exclude": _COUNTED},
            "metricsPort": COLLECTOR_METRICS_PORT, "podSource": "Logs",
        }  # fmt: skip
        watched.change(collector=collector, analyzer={"replicas": _REPLICAS})
        try:
            yield Hardened(watched, server, metrics)
        finally:
            install(cluster, folder)
            watched.change(collector=None, analyzer=None)
