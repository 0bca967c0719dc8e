"""The profile's settings as files, which the pods read."""

from __future__ import annotations

from reveal_contract.kube.names import ANALYZER_SETTINGS, COLLECTOR_SETTINGS
from reveal_operator.manifests.common import SETTINGS, Manifest, metadata
from reveal_operator.profile import Defaults, Profile
from reveal_operator.settings import analyzer_settings, collector_settings, to_file


def data(profile: Profile) -> dict[str, str]:
    """Return the files by name; node and Redis are in each pod's environment."""
    return {
        COLLECTOR_SETTINGS: to_file(collector_settings(profile, "", "")),
        ANALYZER_SETTINGS: to_file(analyzer_settings(profile, "")),
    }


def configmap(profile: Profile, defaults: Defaults) -> Manifest:
    """Return the ConfigMap with the settings."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(profile, defaults, SETTINGS),
        "data": data(profile),
    }
