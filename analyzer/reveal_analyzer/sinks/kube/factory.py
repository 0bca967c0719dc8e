"""The Kubernetes sink from settings; the client is imported only where it is wanted."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

from reveal_analyzer.sinks.kube.api import CONNECT_SECONDS, READ_SECONDS, KubernetesApi
from reveal_analyzer.sinks.kube.sink import KubeSink
from reveal_analyzer.sinks.kube.status import ProfileStatus
from reveal_analyzer.stream.connection import connect as connect_redis
from reveal_contract import VERSION
from reveal_contract.kube.names import ANALYZER_MANAGER, POD_VARIABLE
from reveal_contract.settings import AnalyzerSettings, SettingsError


def connect(kubeconfig: Path | None = None) -> KubernetesApi:
    """Return the API by a kubeconfig file, without one as a pod of the cluster.

    Raises ``SettingsError`` where there is no way to it.
    """
    from reveal_contract.kube import transport  # noqa: PLC0415 - imports the client package

    agent = f"{ANALYZER_MANAGER}/{VERSION}"
    try:
        return KubernetesApi(
            transport.connect(kubeconfig, agent, connect_s=CONNECT_SECONDS, read_s=READ_SECONDS)
        )
    except transport.NoAccessError as error:
        raise SettingsError(str(error)) from None


def sink_of(
    settings: AnalyzerSettings, owner: str, kubeconfig: Path | None, folder: Path | None
) -> KubeSink | None:
    """What ``settings.publish`` asks for; None for "none".

    Raises ``SettingsError`` where there is no way to the API.
    """
    if settings.publish == "none":
        if kubeconfig is not None:
            raise SettingsError("--kubeconfig: goes with --publish observe or kubernetes")
        return None
    if importlib.util.find_spec("kubernetes") is None:
        raise SettingsError(
            f"publish: {settings.publish} needs an extra:"
            " pip install 'reveal-telemetry[kubernetes]'"
        )
    status = ProfileStatus(connect_redis(settings.redis_url), settings.profile, owner)
    instance = os.environ.get(POD_VARIABLE) or owner
    return KubeSink(settings, connect(kubeconfig), instance, folder, status)
