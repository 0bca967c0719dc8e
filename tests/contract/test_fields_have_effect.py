"""Every field of a RevealProfile and every flag has an effect, which a test sees.

``docs/reference/fields-and-flags.md`` lists them all, with the test.  The walks here begin at the
object of the API and end at what a process does: a manifest, a finding, a report, a source.
"""

from __future__ import annotations

import dataclasses
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reveal_analyzer.__main__ import parser as analyzer_parser
from reveal_analyzer.__main__ import settings_of as analyzer_settings_of
from reveal_analyzer.hypotheses import loader
from reveal_analyzer.node import NodeAnalyzer
from reveal_collector import registry
from reveal_collector.command import parser as collector_parser
from reveal_collector.command import settings_of as collector_settings_of
from reveal_contract.finding import Finding, FindingChange, FindingUpdate, Severity
from reveal_contract.kube import names
from reveal_contract.kube.names import HYPOTHESES_FOLDER
from reveal_contract.runtime import logs
from reveal_contract.settings import CollectorSettings
from reveal_operator.__main__ import options_of
from reveal_operator.__main__ import parser as operator_parser
from reveal_operator.manifests import owned_manifests
from reveal_operator.settings import analyzer_settings, collector_settings
from reveal_operator.spec import parse
from support import effects
from support.crd_schema import schema, schema_leaves
from support.finding_factory import opened
from support.profile_factory import CLAIM, built, container, profile
from support.report_store_harness import StoreHarness
from support.synthetic_node import TABLE, Node

Object = dict[str, Any]
ANALYZER = "Deployment"
BUSY = {"network.nic.rx_bytes{eth0}": 9e7, "network.tcp.out_segs": 9e4}
LOSS = {"network.tcp.retrans_segs": 60.0}


# pass into the manifests as they are, with all that is in them
WHOLE = ("nodeSelector", "nodeAffinity", "tolerations", "collector.resources", "analyzer.resources")


def profile_fields() -> set[str]:
    """Return the fields of a profile that have a value of their own."""
    named = {path.removeprefix(".") for path in schema_leaves(schema(names.PROFILES, "spec"))}
    plain = {path for path in named if not path.startswith(WHOLE)}
    return plain | {name for name in WHOLE if any(path.startswith(name) for path in named)}


def test_the_page_has_every_field_of_a_profile() -> None:
    listed = [name for row in effects.rows("Fields of a RevealProfile") for name in row.names]
    assert len(listed) == len(set(listed))
    assert set(listed) == profile_fields()


def test_the_page_names_the_fields_of_a_report() -> None:
    """An AnomalyReport is written and not configured: its test compares it with a finding."""
    [row] = effects.rows("Fields of an AnomalyReport")
    assert row.names == ("spec", "status")


def test_the_page_has_every_flag_of_every_command() -> None:
    listed: dict[str, set[str]] = {}
    for row in effects.rows("Flags"):
        commands = [name for name in row.names if name.startswith(("reveal", "kubectl"))]
        for command in commands:
            listed.setdefault(command, set()).update(set(row.names) - set(commands))
    assert listed == effects.flags()


@pytest.mark.parametrize(
    "heading", ["Fields of a RevealProfile", "Fields of an AnomalyReport", "Flags"]
)
def test_every_row_names_what_changes_and_tests_that_exist(heading: str) -> None:
    for row in effects.rows(heading):
        assert row.changes, row.names
        assert row.tests, row.names
        for test in row.tests:
            path, _, name = test.partition("::")
            assert name in effects.tests_of(path), test


def pod(spec: Object, kind: str = "DaemonSet") -> Object:
    return dict(built(spec)[kind]["spec"]["template"]["spec"])


def main(spec: Object, kind: str = "DaemonSet") -> Object:
    return container(built(spec)[kind])


def mounts(spec: Object) -> str:
    return json.dumps(main(spec)["volumeMounts"])


def redis(**more: Any) -> Object:
    return {"redis": {"url": "rediss://r:6380/0", **more}}


def on_collector(**fields: Any) -> Object:
    return {"collector": fields}


def on_analyzer(**fields: Any) -> Object:
    return {"analyzer": fields}


TERM = {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["a"]}]}
AFFINITY = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [TERM]}}
TAINT = {"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 9}
AMOUNTS = {"requests": {"cpu": "3", "memory": "4Gi"}, "limits": {"cpu": "5", "memory": "6Gi"}}
SECRET = {"name": "s", "usernameKey": "u-key", "passwordKey": "p-key"}
# spec, and where in the manifests it must be; without it, it is not there
MANIFESTS: list[tuple[Object, Callable[[Object], Any], Any]] = [
    ({"nodeSelector": {"pool": "a"}}, lambda s: pod(s).get("nodeSelector"), {"pool": "a"}),
    ({"nodeAffinity": AFFINITY}, lambda s: pod(s)["affinity"]["nodeAffinity"], AFFINITY),
    ({"tolerations": [TAINT]}, lambda s: pod(s)["tolerations"], [TAINT]),
    (on_collector(resources=AMOUNTS), lambda s: main(s)["resources"], AMOUNTS),
    (on_analyzer(resources=AMOUNTS), lambda s: main(s, ANALYZER)["resources"], AMOUNTS),
    (on_collector(image="i:1"), lambda s: main(s)["image"], "i:1"),
    (on_analyzer(image="i:1"), lambda s: main(s, ANALYZER)["image"], "i:1"),
    (on_collector(runtimeClassName="nvidia"), lambda s: pod(s).get("runtimeClassName"), "nvidia"),
    (on_collector(priorityClassName="low"), lambda s: pod(s).get("priorityClassName"), "low"),
    (on_collector(extraHostPaths=[{"path": "/opt/x"}]), lambda s: "/host/opt/x" in mounts(s), True),
    (
        on_collector(privilege="Capabilities"),
        lambda s: main(s)["securityContext"].get("privileged", False),
        False,
    ),
    (on_analyzer(replicas=3), lambda s: built(s)["Deployment"]["spec"]["replicas"], 3),
    (
        on_analyzer(hypothesesConfigMapRef={"name": "mine"}),
        lambda s: '"mine"' in json.dumps(pod(s, ANALYZER)["volumes"]),
        True,
    ),
    ({"evidence": CLAIM}, lambda s: "samples" in json.dumps(pod(s, ANALYZER)["volumes"]), True),
    (redis(), lambda s: "rediss://r:6380/0" in json.dumps(pod(s)), True),
    (
        redis(credentialsSecretRef=SECRET),
        lambda s: [word in json.dumps(pod(s)) for word in ("u-key", "p-key")],
        [True, True],
    ),
    (
        redis(tls={"caSecretRef": {"name": "ca", "key": "root.pem"}}),
        lambda s: "root.pem" in json.dumps(pod(s)),
        True,
    ),
    (redis(tls={"insecureSkipVerify": True}),
     lambda s: "ssl_cert_reqs=none" in json.dumps(pod(s)), True),
]  # fmt: skip


@pytest.mark.parametrize(
    ("spec", "read", "value"), MANIFESTS, ids=[json.dumps(spec)[:60] for spec, *_ in MANIFESTS]
)
def test_a_field_of_the_operator_is_in_the_manifests(
    spec: Object, read: Callable[[Object], Any], value: Any
) -> None:
    assert read(spec) == value
    plain: Object = {"nodeAffinity": {**AFFINITY}} if "nodeAffinity" not in spec else {}
    assert read({} if "nodeSelector" in spec or "nodeAffinity" in spec else plain) != value


OPERATOR_FLAGS = {
    "--namespace": "other-namespace",
    "--collector-image": "c:9",
    "--analyzer-image": "a:9",
    "--image-pull-policy": "Always",
    "--image-pull-secret": "login-9",
    "--collector-service-account": "account-c",
    "--analyzer-service-account": "account-a",
    "--metrics-secret": "secret-7",
    "--redis-url": "redis://nine:6379/0",
    "--redis-credentials-secret": "secret-9",
    "--redis-collector-credentials-secret": "secret-8",
    "--redis-username-key": "user-9",
    "--redis-password-key": "password-9",
    "--redis-ca-secret": "authority-9",
    "--redis-ca-key": "root-9",
}
NEEDED = {
    "--redis-username-key": ["--redis-credentials-secret", "s"],
    "--redis-password-key": ["--redis-credentials-secret", "s"],
    "--redis-ca-key": ["--redis-ca-secret", "s"],
}


def manifests_of(*flags: str) -> str:
    options = options_of(operator_parser().parse_args(["--redis-url", "rediss://r", *flags]), {})
    return json.dumps(owned_manifests(parse(profile()), options.defaults))


@pytest.mark.parametrize("flag", OPERATOR_FLAGS)
def test_a_flag_of_the_operator_is_in_the_manifests(flag: str) -> None:
    needed, value = NEEDED.get(flag, []), OPERATOR_FLAGS[flag]
    assert value in manifests_of(*needed, flag, value)
    assert value not in manifests_of(*needed)


def test_the_operators_redis_is_unverified_on_request() -> None:
    assert "ssl_cert_reqs=none" in manifests_of("--redis-insecure-skip-verify")
    assert "ssl_cert_reqs=none" not in manifests_of()


def test_ports_and_intervals_of_the_operator_are_those_of_its_flags() -> None:
    flags = ["--metrics-port", "91", "--health-port", "92"]
    flags += ["--resync-seconds", "93", "--sweep-seconds", "94"]
    options = options_of(operator_parser().parse_args(flags), {})
    assert (options.metrics_port, options.health_port) == (91, 92)
    assert (options.resync_s, options.sweep_s) == (93.0, 94.0)


@pytest.mark.parametrize(("level", "logged"), [("debug", 3), ("info", 2), ("warning", 1)])
def test_the_log_level_decides_what_is_logged(
    level: str, logged: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    monkeypatch.setattr(root, "level", root.level)
    arguments = operator_parser().parse_args(["--log-level", level])
    logs.set_up(arguments.log_format, getattr(logging, arguments.log_level.upper()))
    for write in (root.debug, root.info, root.warning):
        write("a message")
    assert capsys.readouterr().err.count("a message") == logged


def test_the_fine_lane_can_be_switched_off() -> None:
    off = collector_settings_of(collector_parser().parse_args(["--fine-lane", "off"]), {})
    on = dataclasses.replace(off, fine_lane="auto")
    fine, coarse = (
        {source.name for source in registry.build(registry.roots_of(each), each)}
        for each in (on, off)
    )
    assert len(fine - coarse) == 1


def flag_value(setting: dataclasses.Field[Any]) -> tuple[list[str], Any]:
    """Return arguments that give a setting another value, and that value."""
    flag = f"--{setting.name.replace('_', '-')}"
    known = {"pod_source": "api", "fine_lane": "off", "redis_url": "redis://nine"}
    known |= {"sample_period_milliseconds": "200", "pod_api": "https://api"}
    if setting.default is False:
        return [flag], True
    if isinstance(setting.default, tuple):
        return [flag, "psi", "stat"], ("psi", "stat")
    is_number = isinstance(setting.default, int)
    value = known.get(setting.name, "7" if is_number else "nine")
    return [flag, value], int(value) if is_number else value


POD_API = ["--pod-source", "api", "--pod-api", "https://api"]
NEEDED |= {"pod_file": ["--pod-source", "file"], "metrics_access_folder": ["--metrics-port", "7"]}
NEEDED |= dict.fromkeys(("pod_api", "pod_token_file", "pod_ca_file"), POD_API)


@pytest.mark.parametrize("setting", dataclasses.fields(CollectorSettings), ids=lambda s: s.name)
def test_a_flag_of_the_collector_reaches_its_setting(setting: dataclasses.Field[Any]) -> None:
    arguments, value = flag_value(setting)
    needed = NEEDED.get(setting.name, [])
    settings = collector_settings_of(collector_parser().parse_args([*needed, *arguments]), {})
    found = getattr(settings, setting.name)
    assert (found[: len(value)] if isinstance(value, tuple) else found) == value


def test_a_flag_of_the_analyzer_reaches_its_setting() -> None:
    flags = ["--redis", "redis://nine", "--profile", "nine", "--mode", "paper"]
    flags += ["--sensitivity", "High", "--metrics-port", "99", "--publish", "observe"]
    flags += ["--metrics-access-folder", "/access"]
    settings = analyzer_settings_of(analyzer_parser().parse_args(flags), {})
    assert (settings.redis_url, settings.profile) == ("redis://nine", "nine")
    assert (settings.mode, settings.sensitivity, settings.metrics_port) == ("paper", "High", 99)
    assert (settings.publish, settings.metrics_access_folder) == ("observe", "/access")


def collector(**fields: Any) -> CollectorSettings:
    return collector_settings(parse(profile(on_collector(**fields))), "n", "redis://r")


def sources(**fields: Any) -> set[str]:
    settings = collector(**fields)
    return {source.name for source in registry.build(registry.roots_of(settings), settings)}


def test_sources_are_those_that_the_profile_names() -> None:
    every = sources()
    assert sources(sources={"include": ["stat"]}) == {"stat"}
    assert sources(sources={"exclude": ["stat"]}) == every - {"stat"}
    assert sources(perfCgroups=True) - every == {"subject-perf"}


def test_subjects_are_as_many_and_as_fine_as_the_profile_has_it() -> None:
    settings = collector(maxSubjects=7, containerSubjects=True)
    selection = registry.subject_tracker(registry.roots_of(settings), settings).selection
    assert (selection.limit, selection.containers) == (7, True)


def found(spec: Object, quiet_s: int, fault: dict[str, float], fault_s: int) -> list[FindingUpdate]:
    """Return what the analyzer of a profile reports of a node with a fault."""
    settings = analyzer_settings(parse(profile(spec)), "redis://r")
    analyzer, node = NodeAnalyzer("n1", settings), Node()
    updates: list[FindingUpdate] = []
    for second in range(quiet_s + fault_s):
        message = node.slice(fault if second >= quiet_s else None)
        updates += analyzer.analyze(message, TABLE)
    return updates


def first(updates: list[FindingUpdate]) -> Finding:
    return next(each.finding for each in updates if each.change is FindingChange.OPENED)


def test_the_mode_decides_what_opens_a_finding() -> None:
    """Activity without harm: abnormal for the paper's detectors, context for the live score."""
    assert not found(on_analyzer(mode="Online"), 70, BUSY, 10)
    assert first(found(on_analyzer(mode="Paper"), 70, BUSY, 10)).methods


def test_the_warm_up_is_as_long_as_the_profile_has_it() -> None:
    short, long = on_analyzer(warmupSeconds=20), on_analyzer(warmupSeconds=120)
    assert first(found(short, 60, LOSS, 15))
    assert not [u for u in found(long, 60, LOSS, 15) if u.change is FindingChange.OPENED]


def test_windows_and_strides_are_those_of_the_profile() -> None:
    def begin(**fields: int) -> int:
        finding = first(found(on_analyzer(mode="Paper", **fields), 105, BUSY, 20))
        return finding.first_observed_ns

    assert len({begin(), begin(windowSeconds=6), begin(windowSeconds=6, strideSeconds=3)}) == 3


def test_causes_of_the_profile_name_findings(tmp_path: Path) -> None:
    spec = on_analyzer(hypothesesConfigMapRef={"name": "mine"}, mode="Paper")
    settings = analyzer_settings(parse(profile(spec)), "redis://r")
    assert settings.hypotheses == (HYPOTHESES_FOLDER,)
    (tmp_path / "mine.yaml").write_text(
        "version: 1\nhypotheses:\n  - name: OurStorm\n    subsystem: Network\n"
        "    claim: 'Our storm'\n    remediation: 'Stop it'\n"
        "    certain:\n      hold: [2, 3]\n      severity: Critical\n"
        "      all: [{metric: network.tcp.out_segs, above: 50000}]\n"
        "    expects: [{metric: network.tcp.out_segs, weight: 1, why: 'it is ours'}]\n"
    )
    rules = loader.load((str(tmp_path),))
    analyzer, node = NodeAnalyzer("n1", settings, rules=rules), Node()
    updates = [
        update
        for second in range(80)
        for update in analyzer.analyze(node.slice(BUSY if second >= 70 else None), TABLE)
    ]
    finding = next(u.finding for u in reversed(updates) if u.finding.hypothesis)
    assert finding.hypothesis is not None
    assert finding.hypothesis.name == "OurStorm"
    assert finding.severity is Severity.CRITICAL


def store(**fields: Any) -> StoreHarness:
    """Return the report store of an analyzer of a profile with this section ``reporting``."""
    settings = dataclasses.asdict(
        analyzer_settings(parse(profile({"reporting": fields})), "redis://r")
    )
    del settings["profile"], settings["publish"]
    return StoreHarness(**settings)


@pytest.mark.parametrize(
    ("least", "severity", "reports"),
    [("Low", Severity.LOW, 1), ("Critical", Severity.HIGH, 0), ("Critical", Severity.CRITICAL, 1)],
)
def test_reports_are_of_the_severity_that_the_profile_asks_for(
    least: str, severity: Severity, reports: int
) -> None:
    harness = store(minSeverity=least)
    harness.update(opened(severity=severity))
    assert len(harness.deliver()) == reports


@pytest.mark.parametrize("desired", [True, False])
def test_events_are_those_of_the_profile(desired: bool) -> None:
    harness = store(events=desired)
    harness.update(opened())
    harness.deliver()
    assert bool(harness.reasons) is desired


def test_as_many_reports_a_minute_as_the_profile_has_it() -> None:
    def written(limit: int) -> int:
        harness = store(reportsPerMinute=limit)
        for number in range(40):
            harness.update(opened(f"cpu-{number}", node_name=f"n{number}"))
        return len(harness.deliver())

    assert written(5) < written(30)
