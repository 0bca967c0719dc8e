"""The probes of the containers."""

from __future__ import annotations

from typing import Any

from reveal_contract.kube.names import RUN_FOLDER
from reveal_contract.runtime.liveness import ALIVE_FILE, READY_FILE

# A collector touches its file each second.  It hangs if the file is a minute old: samples that are
# seconds late on a saturated host are no reason to restart the collector that should show that.
OLDEST_MINUTES = 1
METRICS = "metrics"  # name of the port

_ALIVE, _READY = f"{RUN_FOLDER}/{ALIVE_FILE}", f"{RUN_FOLDER}/{READY_FILE}"
# find(1) fails if the file is missing, or if the command that it runs for an old one fails
_YOUNG = ["find", _ALIVE, "-mmin", f"+{OLDEST_MINUTES}", "-exec", "false", "{}", "+"]


def of_collector() -> dict[str, Any]:
    """Return probes by files, as a port would be the host's.

    Each probe starts a process in the container, some 15 ms of CPU with runc alone.  That is the
    CPU time of three seconds of sampling, so probes are rare, and none starts a shell.  The first
    start may take a while on a host with many CPUs and devices.
    """
    alive, ready = ["test", "-e", _ALIVE], ["test", "-e", _READY]
    return {
        "startupProbe": _probe(_exec(alive), period=5, failures=24, timeout=10),
        "livenessProbe": _probe(_exec(_YOUNG), period=60, failures=2, timeout=10),
        "readinessProbe": _probe(_exec(ready), period=20, failures=3, timeout=10),
    }


def of_analyzer(tls: bool) -> dict[str, Any]:
    """Return probes by HTTP or, with ``tls``, HTTPS.  A start takes 8 s of CPU to compile loops."""
    healthy, ready = _get("/healthz", tls), _get("/readyz", tls)
    return {
        "startupProbe": _probe(healthy, period=2, failures=90, timeout=5),
        "livenessProbe": _probe(healthy, period=10, failures=6, timeout=5),
        "readinessProbe": _probe(ready, period=5, failures=3, timeout=5),
    }


def _exec(command: list[str]) -> dict[str, Any]:
    return {"exec": {"command": command}}


def _get(path: str, tls: bool) -> dict[str, Any]:
    scheme = {"scheme": "HTTPS"} if tls else {}  # the kubelet does not verify the certificate
    return {"httpGet": {"path": path, "port": METRICS, **scheme}}


def _probe(how: dict[str, Any], period: int, failures: int, timeout: int) -> dict[str, Any]:
    limits = {"periodSeconds": period, "failureThreshold": failures, "timeoutSeconds": timeout}
    return {**how, **limits}
