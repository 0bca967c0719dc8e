"""Schemas, findings and settings agree: every field that one side writes exists on the other."""

from __future__ import annotations

from dataclasses import fields
from enum import StrEnum
from typing import Any

import pytest

from reveal_contract import settings
from reveal_contract.finding import (
    Confidence,
    Finding,
    FindingKind,
    FindingScope,
    Resolution,
    Severity,
    State,
)
from reveal_contract.kube import names
from reveal_contract.kube.anomaly_report import report
from reveal_contract.metric import Subsystem
from reveal_contract.settings import AnalyzerSettings, CollectorSettings
from reveal_contract.time_units import NS_PER_SECOND
from reveal_operator.settings import analyzer_settings, collector_settings
from reveal_operator.spec import SpecError, parse
from support import example_cluster, finding_factory, profile_factory
from support.crd_schema import Schema, defaulted, faults, leaves, parts, schema, schema_leaves

NOW = 1_700_000_000 * NS_PER_SECOND
REPORT = schema(names.REPORTS)
PROFILE_SPEC = schema(names.PROFILES, "spec")

# of a profile's field: whose setting it becomes, under which name
SETTINGS: dict[str, tuple[type, str]] = {
    ".collector.samplePeriodMilliseconds": (CollectorSettings, "sample_period_milliseconds"),
    ".collector.cpuBudgetMillicores": (CollectorSettings, "cpu_budget_millicores"),
    ".collector.maxSubjects": (CollectorSettings, "max_subjects"),
    ".collector.containerSubjects": (CollectorSettings, "container_subjects"),
    ".collector.perfCgroups": (CollectorSettings, "perf_cgroups"),
    ".collector.gpuProfiling": (CollectorSettings, "gpu_profiling"),
    ".collector.metricsPort": (CollectorSettings, "metrics_port"),
    ".collector.metricsSeries": (CollectorSettings, "metrics_series"),
    ".analyzer.mode": (AnalyzerSettings, "mode"),
    ".analyzer.sensitivity": (AnalyzerSettings, "sensitivity"),
    ".analyzer.windowSeconds": (AnalyzerSettings, "window_seconds"),
    ".analyzer.strideSeconds": (AnalyzerSettings, "stride_seconds"),
    ".analyzer.warmupSeconds": (AnalyzerSettings, "warmup_seconds"),
    ".analyzer.metricsSubjects": (AnalyzerSettings, "metrics_subjects"),
    ".reporting.minSeverity": (AnalyzerSettings, "min_severity"),
    ".reporting.events": (AnalyzerSettings, "events"),
    ".reporting.nodeConditions": (AnalyzerSettings, "node_conditions"),
    ".reporting.maxNodeConditionsPercent": (AnalyzerSettings, "max_node_conditions_percent"),
    ".reporting.reportsPerMinute": (AnalyzerSettings, "reports_per_minute"),
    ".evidence.store": (AnalyzerSettings, "evidence_store"),
    ".evidence.retentionSeconds": (AnalyzerSettings, "evidence_retention_seconds"),
    ".evidence.maxBytes": (AnalyzerSettings, "evidence_max_bytes"),
    ".evidence.historyHours": (AnalyzerSettings, "evidence_history_hours"),
}
# what is the operator's own, or becomes manifests and no setting
OF_THE_OPERATOR = (
    ".nodeSelector", ".nodeAffinity", ".tolerations", ".paused", ".mode", ".redis",
    ".collector.privilege", ".collector.resources", ".collector.extraHostPaths",
    ".collector.runtimeClassName", ".collector.priorityClassName", ".collector.image",
    ".collector.sources",  # two tuples of the collector's
    ".collector.podSource",  # a setting of collectors, mounts, and a setting of analyzers
    ".analyzer.originProof", ".analyzer.replicas", ".analyzer.resources",
    ".analyzer.hypothesesConfigMapRef",
    ".analyzer.image", ".reporting.ttlSecondsAfterResolved", ".reporting.maxReports",
    ".reporting.otlp", ".evidence.claimName",
    ".reporting.gpuHourPrice",  # a setting, and absent by default
)  # fmt: skip


def as_object(finding: Finding) -> dict[str, Any]:
    """Return the report as the API returns it."""
    result = report(finding, "training", 3)
    return {**result.to_create(), "status": result.status}


def settings_of(kind: type, **values: Any) -> list[str]:
    """Return the problems that a component finds in a setting."""
    base: dict[str, Any] = {"redis_url": "redis://r"}
    if kind is CollectorSettings:
        base["node"] = "n"
    settings = kind(**{**base, **values})
    assert isinstance(settings, CollectorSettings | AnalyzerSettings)
    return settings.problems()


def test_every_part_of_a_finding_has_a_field_and_every_field_a_writer() -> None:
    written = leaves(as_object(finding_factory.finding_with_all_fields(NOW)))
    room = schema_leaves(REPORT) - {".metadata"}
    assert {path for path in written if not path.startswith(".metadata")} == room


def test_names_are_those_of_the_json_row() -> None:
    row = finding_factory.finding_with_all_fields(NOW).to_dict()
    spec, status = REPORT["properties"]["spec"], REPORT["properties"]["status"]
    known = {*spec["properties"], *status["properties"], "id"}
    assert set(row) - known == set()
    for name, part in row.items():
        if isinstance(part, dict):
            assert set(part) == set(status["properties"][name]["properties"])
        if isinstance(part, list) and isinstance(part[0], dict):
            assert set(part[0]) == set(status["properties"][name]["items"]["properties"])


@pytest.mark.parametrize(
    "finding", finding_factory.example_findings(NOW), ids=lambda finding: finding.id
)
def test_an_example_finding_fits_the_schema(finding: Finding) -> None:
    assert faults(REPORT, as_object(finding)) == []


def test_a_resolved_report_may_have_each_resolution() -> None:
    """While it is open the field is absent."""
    words = dict(parts(REPORT))[".status.resolution"]["enum"]
    assert words == [word.value for word in Resolution if word]


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (".spec.scope", FindingScope),
        (".spec.kind", FindingKind),
        (".spec.subsystem", Subsystem),
        (".status.subsystem", Subsystem),
        (".status.subsystems[]", Subsystem),
        (".status.state", State),
        (".status.severity", Severity),
        (".status.pods[].confidence", Confidence),
        (".status.subjects[].confidence", Confidence),
    ],
)
def test_enumerations_of_the_schema_are_those_of_a_finding(path: str, words: type[StrEnum]) -> None:
    assert dict(parts(REPORT))[path]["enum"] == [word.value for word in words]


def field_of(path: str) -> Schema:
    return dict(parts(PROFILE_SPEC))[path]


def test_every_field_of_a_profile_goes_somewhere() -> None:
    """Each field becomes a setting or is used by the operator."""
    plain = {
        path for path, part in parts(PROFILE_SPEC)
        if path and part.get("type") != "object" and not path.endswith(("[]", "{}"))
    }  # fmt: skip
    own = {path for path in plain if path.startswith(OF_THE_OPERATOR)}
    assert plain - own == set(SETTINGS)


def test_defaults_are_those_of_the_settings() -> None:
    filled = defaulted(PROFILE_SPEC, {})
    for path, (kind, name) in SETTINGS.items():
        _, section, field = path.split(".")
        [default] = [spec.default for spec in fields(kind) if spec.name == name]
        given = filled[section][field]
        assert str(given).lower() == str(default).lower(), path


def another(part: Schema) -> Any:
    """Return a value that the schema takes and that is not its default."""
    default = part["default"]
    if part["type"] == "boolean":
        return not default
    if part["type"] == "integer":
        return part["minimum"] if part["minimum"] != default else default + 1
    return next(word for word in part["enum"] if word != default)


@pytest.mark.parametrize("path", SETTINGS)
def test_a_field_of_a_profile_reaches_its_setting(path: str) -> None:
    """Parser and operator pass it on: neither drops a field that it does not know."""
    kind, name = SETTINGS[path]
    _, section, field = path.split(".")
    profile = parse(profile_factory.profile({section: {field: another(field_of(path))}}))
    reached = {
        CollectorSettings: collector_settings(profile, "node", "redis://r"),
        AnalyzerSettings: analyzer_settings(profile, "redis://r"),
    }
    [default] = [spec.default for spec in fields(kind) if spec.name == name]
    assert getattr(reached[kind], name) != default


@pytest.mark.parametrize("path", [path for path in SETTINGS if field_of(path)["type"] == "integer"])
def test_the_bounds_of_a_number_are_good_settings(path: str) -> None:
    kind, name = SETTINGS[path]
    part = field_of(path)
    for bound in (part["minimum"], part["maximum"]):
        # a stride goes with its window, and the other way round
        pair = {"window_seconds": bound, "stride_seconds": bound}
        values = pair if name in pair else {name: bound}
        assert settings_of(kind, **values) == [], bound


@pytest.mark.parametrize("path", [path for path in SETTINGS if field_of(path)["type"] == "integer"])
def test_a_bad_number_names_its_path(path: str) -> None:
    """Without the API server's check, as of a profile that an earlier schema let through."""
    kind, name = SETTINGS[path]
    _, section, field = path.split(".")
    bad = field_of(path)["minimum"] - 1
    assert settings_of(kind, **{name: bad}) != []
    with pytest.raises(SpecError) as refused:
        parse(profile_factory.profile({section: {field: bad}}))
    problems = refused.value.problems
    assert any(problem.startswith(f"spec{path}:") for problem in problems)
    assert [problem for problem in problems if not problem.startswith(f"spec.{section}.")] == []


def test_enumerations_of_a_profile_are_those_of_the_settings() -> None:
    assert tuple(field_of(".analyzer.sensitivity")["enum"]) == settings.SENSITIVITIES
    assert tuple(field_of(".reporting.minSeverity")["enum"]) == settings.SEVERITIES
    stores = tuple(word.lower() for word in field_of(".evidence.store")["enum"])
    assert stores == settings.EVIDENCE_STORES
    modes = tuple(word.lower() for word in field_of(".analyzer.mode")["enum"])
    assert modes == settings.MODES


def test_every_field_of_a_profiles_status_has_a_writer() -> None:
    """The operator all but ``telemetry``, the analyzer that."""
    written = leaves(
        example_cluster.profile_status(
            example_cluster.HEALTHY, example_cluster.PROFILES[example_cluster.WATCHED][2]
        )
    )
    assert written == schema_leaves(schema(names.PROFILES, "status"))


@pytest.mark.parametrize("name", example_cluster.PROFILES)
def test_a_profiles_status_fits(name: str) -> None:
    _, facts, tally = example_cluster.PROFILES[name]
    status = schema(names.PROFILES, "status")
    assert faults(status, example_cluster.profile_status(facts, tally)) == []
