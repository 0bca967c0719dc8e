"""The profile's settings as files, which the pods read."""

from __future__ import annotations

from dataclasses import replace

from reveal_contract.kube.names import ANALYZER_SETTINGS, COLLECTOR_SETTINGS
from reveal_operator.manifests import metrics_access
from reveal_operator.manifests.common import SETTINGS, Manifest, metadata
from reveal_operator.profile import Defaults, Profile
from reveal_operator.settings import analyzer_settings, collector_settings, to_file


def data(profile: Profile, defaults: Defaults) -> dict[str, str]:
    """Return the files by name; node and Redis are in each pod's environment."""
    folder = metrics_access.folder(defaults.metrics_secret)
    collector, analyzer = collector_settings(profile, "", ""), analyzer_settings(profile, "")
    if collector.metrics_port:
        collector = replace(collector, metrics_access_folder=folder)
    return {
        COLLECTOR_SETTINGS: to_file(collector),
        ANALYZER_SETTINGS: to_file(replace(analyzer, metrics_access_folder=folder)),
    }


def configmap(profile: Profile, defaults: Defaults) -> Manifest:
    """Return the ConfigMap with the settings."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(profile, defaults, SETTINGS),
        "data": data(profile, defaults),
    }
