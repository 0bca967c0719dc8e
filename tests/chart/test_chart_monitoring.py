"""Alerts and dashboards speak of metrics that exist, in a language that Prometheus reads."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from prometheus_client.metrics_core import Metric

from reveal_analyzer.ledger.gpu_time_metrics import GpuTimeMetrics
from reveal_analyzer.ledger.subject_metrics import SubjectMetrics
from reveal_analyzer.sinks.metrics import KubeSinkMetrics, Metrics
from reveal_collector.collector import Collector
from reveal_collector.exporter.metrics import HealthExporter
from reveal_contract.settings import CollectorSettings
from reveal_operator.app import Operator, OperatorOptions
from reveal_operator.kube import KubernetesClient
from reveal_operator.spec import Defaults
from support.helm_chart import CHART, ROOT, Helm, HelmError, find_object

ALERTS: list[dict[str, Any]] = yaml.safe_load((CHART / "files" / "alerts.yaml").read_text())[
    "alerts"
]
DASHBOARDS: dict[str, dict[str, Any]] = {  # by their keys in the ConfigMap
    "reveal.json": json.loads((CHART / "files" / "dashboard.json").read_text()),
    "reveal-jobs.json": json.loads((CHART / "files" / "dashboard-jobs.json").read_text()),
}
VARIABLES = {"$__rate_interval": "5m", "$__range": "6h", "$node": ".*", "$subject": ".*"}
OURS = re.compile(r"\b(?:reveal|process)_[a-z0-9_]+")
PAGE = (ROOT / "docs" / "reference/alerts.md").read_text()


def expressions() -> Iterator[str]:
    for alert in ALERTS:
        yield alert["expr"]
    for dashboard in DASHBOARDS.values():
        yield from queries(dashboard)


def queries(dashboard: dict[str, Any]) -> Iterator[str]:
    """What a dashboard asks Prometheus: of its panels, annotations and variables."""
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    asked += [each["expr"] for each in dashboard.get("annotations", {}).get("list", ())]
    labels = (each["query"] for each in dashboard["templating"]["list"] if each["type"] == "query")
    asked += [re.sub(r"label_values\((.*), \w+\)", r"\1", query) for query in labels]
    for expression in asked:
        for name, value in VARIABLES.items():
            expression = expression.replace(name, value)  # noqa: PLW2901
        assert "$" not in expression
        yield expression


def series(families: Iterable[Metric]) -> set[str]:
    """The names of samples that families of these types have."""
    endings = {
        "counter": ("_total", "_created"), "histogram": ("_bucket", "_sum", "_count"),
        "summary": ("_sum", "_count"), "info": ("_info",),
    }  # fmt: skip
    return {
        family.name + ending for family in families for ending in endings.get(family.type, ("",))
    }


@pytest.fixture(scope="module")
def existing() -> set[str]:
    """Every series that operator, analyzers and collectors show."""
    analyzer = Metrics()
    analyzer.watch(lambda: defaultdict(int))
    analyzer.watch_states(defaultdict(int))
    analyzer.registry.register(KubeSinkMetrics(lambda: defaultdict(int)))
    analyzer.registry.register(SubjectMetrics(1))
    analyzer.registry.register(GpuTimeMetrics())
    collector = Collector(CollectorSettings(node="n", redis_url="", include=("loadavg",)), [])
    operator = Operator(
        cast(KubernetesClient, None), OperatorOptions(Defaults("n", "collector", "analyzer"))
    )
    collector.start()
    try:
        found = series(analyzer.registry.collect()) | series(HealthExporter(collector).collect())
    finally:
        collector.stop()
    return found | series(operator._metrics.registry.collect()) | {"process_cpu_seconds_total"}


def test_every_queried_metric_exists(existing: set[str]) -> None:
    asked = {name for expression in expressions() for name in OURS.findall(expression)}
    assert len(asked) > 20
    assert asked - existing == set()


def test_every_alert_has_a_page_and_a_description() -> None:
    headings = re.findall(r"^## (\w+)$", PAGE, flags=re.MULTILINE)
    names = [alert["alert"] for alert in ALERTS]
    assert headings == names
    for alert in ALERTS:
        assert alert["labels"]["severity"] in ("critical", "warning", "info")
        assert {"summary", "description"} == alert["annotations"].keys()


def rule(helm: Helm, *flags: str | Path) -> dict[str, Any]:
    found: dict[str, Any] = find_object(
        helm.render("--set", "prometheusRule.enabled=true", *flags), "PrometheusRule"
    )
    return found


def alerts_of(rule_object: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = rule_object["spec"]["groups"][0]["rules"]
    return found


def test_alerts_are_rendered_with_a_link_to_their_page(helm: Helm) -> None:
    rendered = {alert["alert"]: alert for alert in alerts_of(rule(helm))}
    assert rendered.keys() == {alert["alert"] for alert in ALERTS}
    for alert in ALERTS:
        result = rendered[alert["alert"]]
        page = result["annotations"].pop("runbook")
        assert page == f"docs/reference/alerts.md#{alert['alert'].lower()}"
        assert result == alert


def test_links_use_the_configured_base_url(helm: Helm) -> None:
    url = "https://wiki.example.com/alerts"
    for alert in alerts_of(rule(helm, "--set", f"prometheusRule.runbookURL={url}")):
        assert alert["annotations"]["runbook_url"] == f"{url}#{alert['alert'].lower()}"
        assert "runbook" not in alert["annotations"]


@pytest.mark.parametrize("name", [alert["alert"] for alert in ALERTS])
def test_each_alert_can_be_turned_off(helm: Helm, name: str) -> None:
    left = alerts_of(rule(helm, "--set", f"prometheusRule.disabled={{{name}}}"))
    assert len(left) == len(ALERTS) - 1
    assert name not in {alert["alert"] for alert in left}


def promtool(path: Path) -> str:
    if shutil.which("promtool") is None:
        pytest.skip("no promtool: Debian's package prometheus has it")
    done = subprocess.run(
        ["promtool", "check", "rules", path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_promtool_accepts_the_rules(helm: Helm, tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(yaml.safe_dump(rule(helm)["spec"]))
    assert f"{len(ALERTS)} rules found" in promtool(path)


def test_promtool_accepts_the_queries_of_the_dashboards(tmp_path: Path) -> None:
    rules = [
        {"record": f"panel:{number}", "expr": expression}
        for number, expression in enumerate(expressions())
    ]
    path = tmp_path / "dashboard.yaml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    promtool(path)


def test_promtool_refuses_a_wrong_rule(tmp_path: Path) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text("groups: [{name: a, rules: [{record: a, expr: 'sum by ('}]}]")
    with pytest.raises(AssertionError):
        promtool(path)


def test_the_dashboards_can_be_loaded_by_grafana(helm: Helm) -> None:
    result = find_object(helm.render("--set", "grafanaDashboard.enabled=true"), "ConfigMap")
    assert result["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert result["metadata"]["annotations"]["grafana_folder"] == "Reveal"
    assert {key: json.loads(text) for key, text in result["data"].items()} == DASHBOARDS
    assert len({each["uid"] for each in DASHBOARDS.values()}) == len(DASHBOARDS)


@pytest.mark.parametrize("name", DASHBOARDS)
def test_no_panel_covers_another(name: str) -> None:
    panels = DASHBOARDS[name]["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        position = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(position["x"], position["x"] + position["w"])
            for y in range(position["y"], position["y"] + position["h"])
        }
        assert position["x"] + position["w"] <= 24
        assert taken.isdisjoint(cells), panel["title"]
        taken |= cells


def test_monitors_select_our_pods_by_the_port_they_name(helm: Helm) -> None:
    service = helm.render("--values", CHART / "ci" / "service-monitor-values.yaml")
    monitor = find_object(service, "ServiceMonitor")
    about = find_object(service, "Service", "reveal-metrics")
    expected = monitor["spec"]["selector"]["matchLabels"].items()
    assert expected <= about["metadata"]["labels"].items()
    [endpoint] = monitor["spec"]["endpoints"]
    [port] = about["spec"]["ports"]
    assert (endpoint["port"], port["targetPort"]) == (port["name"], "metrics")
    others = [each for each in service if each["kind"] == "Service" and each is not about]
    assert not any(expected <= each["metadata"]["labels"].items() for each in others)

    pod = find_object(
        helm.render("--values", CHART / "ci" / "pod-monitor-values.yaml"), "PodMonitor"
    )
    assert [each["port"] for each in pod["spec"]["podMetricsEndpoints"]] == ["metrics"]


@pytest.mark.parametrize(
    ("kind", "endpoints"),
    [("PodMonitor", "podMetricsEndpoints"), ("ServiceMonitor", "endpoints")],
)
def test_monitors_have_the_access_to_restricted_metrics(
    helm: Helm, kind: str, endpoints: str
) -> None:
    pod = str(kind == "PodMonitor").lower()
    service = str(kind == "ServiceMonitor").lower()
    chosen = f"metrics.podMonitor.enabled={pod},metrics.serviceMonitor.enabled={service}"
    values = CHART / "ci" / "metrics-access-values.yaml"
    monitor = find_object(helm.render("--values", values, "--set", chosen), kind)
    [endpoint] = monitor["spec"][endpoints]
    assert endpoint["scheme"] == "https"
    assert endpoint["tlsConfig"]["ca"]["secret"] == {"name": "reveal-metrics", "key": "ca.crt"}
    assert endpoint["authorization"]["credentials"] == {"name": "reveal-metrics", "key": "token"}
    plain = find_object(helm.render("--set", chosen), kind)
    assert plain["spec"][endpoints] == [
        {name: endpoint[name] for name in ("port", "path", "interval", "scrapeTimeout")}
    ]


def test_an_alert_that_does_not_exist_cannot_be_turned_off(helm: Helm) -> None:
    with pytest.raises(HelmError, match="RevealTypo, which is no alert"):
        rule(helm, "--set", "prometheusRule.disabled={RevealTypo}")
