"""Pods of a real cluster that do harm, and what the one report of it has to say."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from support.api_server import unique, wait_for
from support.cluster_release import Release

KNOWN_S = 10.0  # a finding names those who are known when it opens
THROTTLED, NOISY = "throttled", "noisy"  # names of pods
# causes of pods that wait for a CPU: as the ledger measures it, and the pressure of the node
TAKEN, CROWDED = "CPUTakenByNeighbor", "CPUContention"
SPIN = "while True: sum(range(10000))"
_EAT = "kept = [b'x' * (1 << 20) for _ in range(200)]"
LOG_TIME = "date +%s.%N"  # a pod's log says when it began to do harm
FORGETFUL = f'sleep {KNOWN_S:.0f}; {LOG_TIME}; while true; do python3 -c "{_EAT}"; sleep 2; done'
_LOOPS = f"{LOG_TIME}; for i in 1 2 3 4 5 6; do python3 -c '{SPIN}' & done; wait"


@dataclass(frozen=True)
class Expected:
    """What the one report is to say; of a ``victim`` that nobody is to blame for its loss.

    Without ``pod`` the report names none.  Reports of hypotheses ``beside`` it are right, too, and
    so are those of what pods, whose names begin with ``restarted``, read when they start again.
    """

    node: str
    subsystem: str
    hypothesis: str
    pod: str = ""
    victim: bool = False
    beside: tuple[str, ...] = ()
    restarted: str = ""

    def is_beside(self, cause: str, pods: Collection[str]) -> bool:
        """Whether a report of a cause, by these pods, is right beside this one."""
        is_start = bool(self.restarted and pods) and cause == "StorageReadBurst"
        return cause in self.beside or (
            is_start and all(pod.startswith(self.restarted) for pod in pods)
        )


def quota(node: str, namespace: str, pod: str = THROTTLED) -> Expected:
    """Return the expected report of a pod that is throttled by its CPU quota."""
    return Expected(node, "CPU", "CPUQuotaThrottling", f"{namespace}/{pod}")


def contention(node: str, namespace: str) -> Expected:
    """Return the expected report of a pod that takes the CPUs of others."""
    return Expected(node, "CPU", TAKEN, f"{namespace}/{NOISY}")


def throttled(
    watched: Release, namespace: str, node: str, quota: str = "150m"
) -> AbstractContextManager[None]:
    """A pod that wants a CPU and may have only a small part of it."""
    limits = {"cpu": quota, "memory": "128Mi"}
    command = ["sh", "-c", f"{LOG_TIME}; exec python3 -c '{SPIN}'"]
    container = {"command": command, "resources": {"limits": limits}}
    return watched.pod(namespace, node, THROTTLED, **container)


def noisy(
    watched: Release, namespace: str, node: str, request: str = "1"
) -> AbstractContextManager[None]:
    """A pod that keeps six processes busy, far more than it requests."""
    resources = {"requests": {"cpu": request}}
    container = {"command": ["sh", "-c", _LOOPS], "resources": resources}
    return watched.pod(namespace, node, NOISY, **container)


def forgetful(watched: Release, namespace: str, node: str) -> AbstractContextManager[None]:
    """A pod that is killed for its memory again and again, once it is known."""
    container = {"command": ["sh", "-c", FORGETFUL], "resources": {"limits": {"memory": "64Mi"}}}
    return watched.pod(namespace, node, "forgetful", **container)


@contextmanager
def namespace_of_jobs(watched: Release) -> Iterator[str]:
    """A namespace of its own: no pod has the name of one that another test had."""
    name = unique("jobs")
    manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    watched.kube.create(manifest)
    wait_for(lambda: watched.kube.get("v1", "ServiceAccount", "default", name), 30, "an account")
    try:
        yield name
    finally:
        watched.kube.delete(manifest)
