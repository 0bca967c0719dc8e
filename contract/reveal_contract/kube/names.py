"""Names in Kubernetes that operator, collector, analyzer, CRDs and chart share.

Rules of names: "Object Names and IDs" and "Labels and Selectors" of the Kubernetes documentation.
"""

from __future__ import annotations

import re

# the function of hashlib; importing hashlib loads OpenSSL into a collector's memory
from _blake2 import blake2b

GROUP = "reveal.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
PROFILE_KIND, PROFILES = "RevealProfile", "revealprofiles"
REPORT_KIND, REPORTS = "AnomalyReport", "anomalyreports"

# field managers of server-side apply, also reportingController of Events
OPERATOR_MANAGER = "reveal-operator"
ANALYZER_MANAGER = "reveal-analyzer"

COLLECTOR, ANALYZER, OPERATOR = "collector", "analyzer", "operator"

LABEL_NAME = "app.kubernetes.io/name"  # always "reveal"
LABEL_COMPONENT = "app.kubernetes.io/component"
LABEL_MANAGED_BY = "app.kubernetes.io/managed-by"
LABEL_PROFILE = f"{GROUP}/profile"
LABEL_NODE = f"{GROUP}/node"
LABEL_SUBSYSTEM = f"{GROUP}/subsystem"
LABEL_SEVERITY = f"{GROUP}/severity"
LABEL_STATE = f"{GROUP}/state"
APP = "reveal"

ANNOTATION_INTENT = f"{GROUP}/intent-hash"  # of an object as it was applied last
ANNOTATION_SETTINGS = f"{GROUP}/settings-hash"  # of a pod template: new settings, new pods
ANNOTATION_HYPOTHESES = f"{GROUP}/hypotheses-hash"  # the same of a ConfigMap that a profile names
# of an AnomalyReport that a user silenced: see kube.silence
ANNOTATION_SILENCED_UNTIL = f"{GROUP}/silenced-until"
ANNOTATION_SILENCED_BECAUSE = f"{GROUP}/silenced-because"

# of the pods' environment
NODE_VARIABLE = "REVEAL_NODE_NAME"
NAMESPACE_VARIABLE = "REVEAL_NAMESPACE"
POD_VARIABLE = "REVEAL_POD_NAME"
REDIS_USERNAME_VARIABLE = "REVEAL_REDIS_USERNAME"
REDIS_PASSWORD_VARIABLE = "REVEAL_REDIS_PASSWORD"  # noqa: S105 - the name of a variable
SENTINEL_USERNAME_VARIABLE = "REVEAL_REDIS_SENTINEL_USERNAME"
SENTINEL_PASSWORD_VARIABLE = "REVEAL_REDIS_SENTINEL_PASSWORD"  # noqa: S105 - the name of a variable

# inside the pods
SETTINGS_FOLDER = "/etc/reveal"
COLLECTOR_SETTINGS = "collector.json"  # keys of the profile's ConfigMap, files of the folder
ANALYZER_SETTINGS = "analyzer.json"
HYPOTHESES_FOLDER = "/etc/reveal-hypotheses"
REDIS_AUTHORITY_FOLDER = "/etc/reveal-redis"
ORIGIN_FOLDER = "/var/run/secrets/reveal.dev"  # of collectors: a token that analyzers have reviewed
ORIGIN_TOKEN = "token"  # noqa: S105 - the name of a file
METRICS_ACCESS_FOLDER = "/etc/reveal-metrics"  # a Secret that restricts who may read metrics
RUN_FOLDER = "/run/reveal"  # an emptyDir: the alive file, the spool
EVIDENCE_FOLDER = "/var/lib/reveal/evidence"  # the volume of a claim that a profile names
HOST_FOLDER = "/host"  # the host's /proc, /sys below it

METRICS_PORT = 9478  # of analyzers; collectors have none unless a profile sets one
SAMPLES_PORT = 9479  # of analyzers, on 127.0.0.1 of the pod: for port-forward
OTLP_HEADERS_VARIABLE = "OTEL_EXPORTER_OTLP_HEADERS"  # as the OpenTelemetry specification has it

_MAX_LABEL = 63
_MAX_NAME = 253
_NOT_LABEL = re.compile(r"[^A-Za-z0-9._-]+")
_EDGES = "._-"
_ELLIPSIS = "…"


def label_value(text: str) -> str:
    """Return a text as a label value: unchanged if valid, else its beginning and a hash."""
    clean = _NOT_LABEL.sub("-", text).strip(_EDGES)
    if clean == text and len(text) <= _MAX_LABEL:
        return text
    return f"{clean[: _MAX_LABEL - 11].rstrip(_EDGES)}-{_digest(text)}".lstrip(_EDGES)


def child_name(component: str, profile: str) -> str:
    """Return the name of a profile's object: it is unique and a valid label."""
    dashed = profile.replace(".", "-")  # names of pods and volumes take no dots
    unique = dashed if dashed == profile else f"{dashed}-{_digest(profile)}"
    return label_value(f"{APP}-{component}-{unique}")


def is_analyzer_pod(subject: str) -> bool:
    """Return whether a subject, NAMESPACE/POD or one of its containers, is an analyzer."""
    _, _, pod = subject.partition("/")
    return pod.startswith(f"{APP}-{ANALYZER}-")


def report_name(profile: str, node: str, finding: str) -> str:
    """Return the name of the report of a finding id: the same at every retry."""
    name = f"{profile}-{node}-{finding}".lower()
    if len(name) <= _MAX_NAME:
        return name
    kept = f"{profile}-{node}".lower()[: _MAX_NAME - len(finding) - 12].rstrip(_EDGES)
    return f"{kept}-{_digest(name)}-{finding}"


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=5).hexdigest()


def clipped(text: str, most: int) -> str:
    """Return the text in at most ``most`` bytes of UTF-8; a longer one ends in an ellipsis."""
    data = text.encode(errors="replace")
    if len(data) <= most:
        return data.decode()
    kept = data[: max(0, most - len(_ELLIPSIS.encode()))].decode(errors="ignore")
    return kept.rstrip() + _ELLIPSIS
