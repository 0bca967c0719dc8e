"""Settings of collector and analyzer: the operator writes them, the processes read them.

Parsing collects every bad field and raises one ``SettingsError`` that lists them all.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Collection, Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from typing import Any, ClassVar, Self, get_type_hints

from reveal_contract import redis_address
from reveal_contract.costs import is_price
from reveal_contract.fields import Reader, boolean, integer, read_fields, string, strings
from reveal_contract.names import DEFAULT_PROFILE, camel_case

log = logging.getLogger(__name__)

SENSITIVITIES = ("Low", "Medium", "High")
MODES = ("online", "paper")
POD_SOURCES = ("none", "api", "file", "logs")
FINE_LANES = ("auto", "off")
# what an analyzer writes to the Kubernetes API: nothing; only the telemetry in the profile's
# status; that and reports, Events and what else the profile asks for
PUBLISH = ("none", "observe", "kubernetes")
# where analyzers keep the samples of findings
EVIDENCE_STORES = ("none", "redis", "folder")
# whether slices must prove their origin; preferred: those of a node whose other slices do
ORIGIN_PROOFS = ("off", "preferred", "required")
SEVERITIES = ("Low", "Medium", "High", "Critical")
# in a file that a program wrote; in one that somebody wrote, an unknown setting is a mistake
_IGNORE_UNKNOWN = "ignoreUnknown"
_API_SCHEMES = ("https://", "http://")
_ENDPOINT = re.compile(r"https?://[^/?#@\s]+(/[^?#\s]*)?\Z", re.ASCII)
_PROFILE = re.compile(r"[A-Za-z0-9_.-]{1,400}\Z")  # part of a key's hash tag: no braces


class SettingsError(ValueError):
    """One or more settings are invalid; the text lists each."""


@dataclass(frozen=True)
class _Settings:
    """Settings of a process, from and to a mapping."""

    _RENAMED: ClassVar[Mapping[str, str]] = {}  # former name of a field -> its name now

    @classmethod
    def from_mapping(cls, given: Mapping[str, Any]) -> Self:
        """Build from camelCase or snake_case keys; one error lists every bad field."""
        if given.get(_IGNORE_UNKNOWN) is True:
            given = cls._known(given)
        hints = get_type_hints(cls)
        names = {key: cls._RENAMED.get(name := _snake_case(key), name) for key in given}
        readers = {key: _READERS[hints[name]] for key, name in names.items() if name in _names(cls)}
        missing = [camel_case(name) for name in _required(cls) if name not in names.values()]
        values, problems = read_fields(given, readers, missing, unknown="no such setting")
        problems += _given_twice(names)
        fields_given = {names[key]: value for key, value in values.items()}
        if not fields_given.keys() >= set(_required(cls)):
            raise SettingsError("; ".join(problems))
        # bad fields are at their defaults, so that the others are checked too
        settings = cls(**fields_given)
        if problems := problems + settings.problems():
            raise SettingsError("; ".join(problems))
        return settings

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Parse what ``to_json`` or ``lenient_json`` wrote."""
        try:
            given = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise SettingsError(f"settings are not JSON: {error}") from None
        if not isinstance(given, dict):
            raise SettingsError("settings are not a JSON object")
        return cls.from_mapping(given)

    @classmethod
    def _known(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings that this version has; the others are logged."""
        names = {*_names(cls), *cls._RENAMED}
        known = {key: value for key, value in given.items() if _snake_case(key) in names}
        for key in given.keys() - known.keys() - {_IGNORE_UNKNOWN}:
            log.warning("setting %s is not known to this version and is ignored", key)
        return known

    def to_json(self) -> str:
        """Return JSON with sorted camelCase keys."""
        return json.dumps(self._rows(), indent=1, sort_keys=True)

    def lenient_json(self, leave_out: Collection[str] = ()) -> str:
        """Return JSON for a process whose version may be older: it ignores what it does not know.

        ``leave_out`` has camelCase keys.
        """
        kept = {key: value for key, value in self._rows().items() if key not in leave_out}
        return json.dumps({**kept, _IGNORE_UNKNOWN: True}, indent=1, sort_keys=True)

    def _rows(self) -> dict[str, Any]:
        return {camel_case(name): value for name, value in asdict(self).items()}

    def problems(self) -> list[str]:
        """Return a sentence for each bad field."""
        return []


@dataclass(frozen=True)
class CollectorSettings(_Settings):
    """Settings of one collector.  The roots are the mounts of the host's file systems."""

    node: str
    redis_url: str
    profile: str = DEFAULT_PROFILE
    proc_root: str = "/proc"
    sys_root: str = "/sys"
    cgroup_root: str = "/sys/fs/cgroup"
    sample_period_milliseconds: int = 100
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    leave_out_subjects: tuple[str, ...] = ()
    max_subjects: int = 64
    pod_source: str = "none"
    pod_file: str = ""
    pod_logs_folder: str = "/var/log"  # of the host, whose kubelet has the logs of pods there
    # how podSource api reaches the API outside of a pod; "": by the service account of the pod
    pod_api: str = ""
    pod_token_file: str = ""
    pod_ca_file: str = ""
    container_subjects: bool = False
    perf_cgroups: bool = False
    gpu_profiling: bool = False
    fine_lane: str = "auto"
    # an idle host takes 5 to 6; one with a fault twice that, when all detail is needed
    cpu_budget_millicores: int = 20
    origin_token_file: str = ""  # of which slices prove their origin; "": they do not
    buffer_seconds: int = 60
    stream_seconds: int = 120
    metrics_port: int = 0
    metrics_series: int = (
        0  # at most so many channels there, in addition to the collector's own metrics
    )
    metrics_access_folder: str = ""  # with certificate and token; "": HTTP for everybody

    def problems(self) -> list[str]:
        found = []
        if not 20 <= self.sample_period_milliseconds <= 1000:
            found.append("samplePeriodMilliseconds: must be between 20 and 1000")
        elif 1000 % self.sample_period_milliseconds:
            found.append("samplePeriodMilliseconds: must divide 1000")
        if not 1 <= len(self.node.encode(errors="replace")) <= 253:
            found.append("node: must be a name of 1 to 253 bytes")
        for name in ("buffer_seconds", "stream_seconds", "cpu_budget_millicores"):
            if getattr(self, name) < 1:
                found.append(f"{camel_case(name)}: must be at least 1")
        for name in ("max_subjects", "metrics_series"):
            if getattr(self, name) < 0:
                found.append(f"{camel_case(name)}: must not be negative")
        if self.pod_source not in POD_SOURCES:
            found.append(f"podSource: must be one of {', '.join(POD_SOURCES)}")
        elif (self.pod_source == "file") != bool(self.pod_file):
            found.append("podFile: is required with podSource file, and allowed only with it")
        found += self._pod_api_problems()
        if self.fine_lane not in FINE_LANES:
            found.append(f"fineLane: must be one of {', '.join(FINE_LANES)}")
        return found + _shared_problems(self)

    def _pod_api_problems(self) -> list[str]:
        if not self.pod_api:
            alone = self.pod_token_file or self.pod_ca_file
            return ["podApi: is required with podTokenFile or podCaFile"] if alone else []
        found = []
        if not self.pod_api.startswith(_API_SCHEMES):
            found.append(f"podApi: must begin with {', '.join(_API_SCHEMES)}")
        if self.pod_source != "api":
            found.append("podApi: needs podSource api")
        return found


@dataclass(frozen=True)
class AnalyzerSettings(_Settings):
    """Settings of an analyzer."""

    _RENAMED = {"report": "publish"}

    redis_url: str = ""
    profile: str = DEFAULT_PROFILE
    mode: str = "online"
    sensitivity: str = "Low"
    window_seconds: int = 3
    stride_seconds: int = 1
    warmup_seconds: int = 60
    hypotheses: tuple[str, ...] = ()
    metrics_port: int = 0
    metrics_access_folder: str = ""  # with certificate and token; "": HTTP for everybody
    metrics_subjects: int = 0  # of each node have metrics of their lost time; all others share one
    publish: str = "none"
    min_severity: str = "Low"
    events: bool = True
    node_conditions: bool = False
    max_node_conditions_percent: int = 20  # of the profile's nodes have the condition at a time
    cluster_nodes_only: bool = False  # slices of names that are no nodes of the cluster are refused
    join_pods: bool = False  # with their controllers and jobs, where collectors do not know them
    origin_proof: str = "off"  # needs a cluster, which reviews the tokens
    reports_per_minute: int = 30
    evidence_store: str = "redis"
    evidence_folder: str = ""
    evidence_retention_seconds: int = 86_400
    evidence_max_bytes: int = 98_304  # of each finding
    evidence_history_hours: int = 0  # for which a value a second of each node is kept; 0: none
    samples_port: int = 0  # of 127.0.0.1, where samples can be read; 0: none
    otlp_endpoint: str = ""  # of a receiver of OTLP/HTTP; "": none
    gpu_hour_price: str = ""  # with a currency, "2.50 USD"; "": not known

    def problems(self) -> list[str]:
        found = []
        if self.publish not in PUBLISH:
            found.append(f"publish: must be one of {', '.join(PUBLISH)}")
        if self.min_severity not in SEVERITIES:
            found.append(f"minSeverity: must be one of {', '.join(SEVERITIES)}")
        if self.reports_per_minute < 1:
            found.append("reportsPerMinute: must be at least 1")
        if self.gpu_hour_price and not is_price(self.gpu_hour_price):
            found.append("gpuHourPrice: must be a number, with a currency or without: 2.50 USD")
        if not 1 <= self.max_node_conditions_percent <= 100:
            found.append("maxNodeConditionsPercent: must be between 1 and 100")
        if self.mode not in MODES:
            found.append(f"mode: must be one of {', '.join(MODES)}")
        if self.sensitivity not in SENSITIVITIES:
            found.append(f"sensitivity: must be one of {', '.join(SENSITIVITIES)}")
        if not 1 <= self.stride_seconds <= 60:
            found.append("strideSeconds: must be 1 to 60")
        elif not self.stride_seconds <= self.window_seconds <= 60:
            found.append("windowSeconds: must be 1 to 60 and not below strideSeconds")
        if not 0 <= self.metrics_subjects <= 32:
            found.append("metricsSubjects: must be between 0 (none) and 32")
        if self.warmup_seconds < 10:
            found.append("warmupSeconds: must be at least 10")
        if self.otlp_endpoint and not _ENDPOINT.match(self.otlp_endpoint):
            found.append(
                "otlpEndpoint: must be http:// or https:// with a host, and without user, query"
                " and fragment: headers are in another place"
            )
        found += self._origin_problems() + self._evidence_problems()
        return found + _shared_problems(self)

    def _origin_problems(self) -> list[str]:
        if self.origin_proof not in ORIGIN_PROOFS:
            return [f"originProof: must be one of {', '.join(ORIGIN_PROOFS)}"]
        if self.origin_proof != "off" and self.publish == "none":
            return ["originProof: needs publish observe or kubernetes"]
        return []

    def _evidence_problems(self) -> list[str]:
        found = []
        if self.evidence_store not in EVIDENCE_STORES:
            found.append(f"evidenceStore: must be one of {', '.join(EVIDENCE_STORES)}")
        elif (self.evidence_store == "folder") != bool(self.evidence_folder):
            found.append("evidenceFolder: is required with evidenceStore folder, and only then")
        if self.evidence_retention_seconds < 600:
            found.append("evidenceRetentionSeconds: must be at least 600")
        if not 16_384 <= self.evidence_max_bytes <= 1_048_576:
            found.append("evidenceMaxBytes: must be between 16384 and 1048576")
        if not 0 <= self.evidence_history_hours <= 168:
            found.append("evidenceHistoryHours: must be between 0 (none) and 168")
        elif self.evidence_history_hours and self.evidence_store == "none":
            found.append("evidenceHistoryHours: needs an evidenceStore")
        if not 0 <= self.samples_port <= 65_535:
            found.append("samplesPort: must be between 0 (none) and 65535")
        return found


def _shared_problems(settings: CollectorSettings | AnalyzerSettings) -> list[str]:
    found = []
    if settings.redis_url and (sentence := redis_address.problem(settings.redis_url)):
        found.append(f"redisUrl: {sentence}")
    if not _PROFILE.match(settings.profile):
        found.append("profile: must be 1 to 400 letters, digits, dots, dashes and underscores")
    if not 0 <= settings.metrics_port <= 65_535:
        found.append("metricsPort: must be between 0 (none) and 65535")
    if settings.metrics_access_folder and not settings.metrics_port:
        found.append("metricsAccessFolder: needs metricsPort")
    return found


def _names(cls: type[_Settings]) -> list[str]:
    return [spec.name for spec in fields(cls)]


def _required(cls: type[_Settings]) -> list[str]:
    return [spec.name for spec in fields(cls) if spec.default is MISSING]


def _given_twice(names: Mapping[str, str]) -> list[str]:
    """Return a problem for each key that names the same setting as an earlier one."""
    first: dict[str, str] = {}
    return [
        f"{key}: is the same setting as {first[name]}"
        for key, name in names.items()
        if first.setdefault(name, key) != key
    ]


_READERS: dict[Any, Reader[Any]] = {
    int: integer,
    str: string,
    bool: boolean,
    tuple[str, ...]: strings,
}


def _snake_case(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
