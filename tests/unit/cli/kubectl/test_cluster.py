"""What the plugin prints where the cluster does not do what is asked, and which file it takes."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from reveal_cli.errors import CliError
from reveal_cli.kubectl.cluster import Cluster, connect, kubeconfig_of
from reveal_contract.kube.errors import error_of
from support.finding_factory import finding
from support.reports_api import NOW_S, SERVER, ReportsApi

CONFIG = """\
apiVersion: v1
kind: Config
current-context: {current}
clusters: [{{name: c, cluster: {{server: "https://{current}.example:6443"}}}}]
users: [{{name: u, user: {{token: t}}}}]
contexts:
- {{name: {current}, context: {{cluster: c, user: u}}}}
"""


def failing(method: str, status: int, body: bytes = b"{}") -> Cluster:
    api = ReportsApi(finding())
    api.errors[method] = error_of("GET /x", status, body)
    return Cluster(api)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (403, f"you may not list AnomalyReports on {SERVER}"),
        (401, "does not accept your credentials"),
        (404, f"the cluster {SERVER} has no AnomalyReports: Reveal is not installed there"),
        (0, f"the API server {SERVER} cannot be reached"),
        (503, "answers with 503"),
    ],
)
def test_a_refused_list_is_a_sentence(status: int, expected: str) -> None:
    with pytest.raises(CliError) as caught:
        failing("LIST", status).reports()
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_sentence_names_the_role_that_permits_it() -> None:
    with pytest.raises(CliError, match=r"ClusterRole reveal-view"):
        failing("LIST", 403).open_reports()
    with pytest.raises(CliError, match=r"may not patch .*ClusterRole reveal-silence"):
        failing("PATCH", 403).annotate("p-n1-cpu-1", {})


def test_what_a_server_answers_is_inert() -> None:
    with pytest.raises(CliError) as caught:
        failing("LIST", 500, b'{"message": "\\u001b[2J\\u202e"}').reports()
    assert str(caught.value).isprintable()


def test_a_wrong_name_of_a_report_has_similar_names() -> None:
    cluster = Cluster(ReportsApi(finding()))
    with pytest.raises(CliError, match=r"there is no report p-n1-cpu-2: did you mean p-n1-cpu-1\?"):
        cluster.report("p-n1-cpu-2")
    assert cluster.report("p-n1-cpu-1").name == "p-n1-cpu-1"


def test_without_the_right_to_list_a_wrong_name_is_a_sentence() -> None:
    with pytest.raises(CliError, match=r"there is no report p-n1-cpu-2$"):
        failing("LIST", 403).report("p-n1-cpu-2")


@pytest.mark.parametrize("name", ["", "..", "a/b", "A", "x\x1b"])
def test_a_text_that_is_no_name_is_not_requested(name: str) -> None:
    api = ReportsApi(finding())
    with pytest.raises(CliError, match=r"cannot be the name of a report"):
        Cluster(api).report(name)
    assert api.requests == []


def test_the_time_is_that_of_the_server() -> None:
    assert Cluster(ReportsApi()).now_ns == NOW_S * 10**9


def arguments(kubeconfig: Path | None = None, context: str | None = None) -> argparse.Namespace:
    return argparse.Namespace(kubeconfig=kubeconfig and str(kubeconfig), context=context)


def test_without_a_kubeconfig_there_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(CliError, match=r"there is no kubeconfig: .*none does not exist"):
        connect(arguments(tmp_path / "none"))
    with pytest.raises(CliError, match=r"there is no kubeconfig"):
        kubeconfig_of(None, f"{tmp_path}/a:{tmp_path}/b")


def test_a_broken_kubeconfig_is_a_sentence(tmp_path: Path) -> None:
    broken = tmp_path / "config"
    broken.write_text("clusters: [\n")
    with pytest.raises(CliError, match=r"cannot be used") as caught:
        connect(arguments(broken))
    assert "\n" not in str(caught.value)


def test_an_unknown_context_has_similar_names(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(CONFIG.format(current="training"))
    with pytest.raises(CliError, match=r"has no context trainin: did you mean training\?"):
        connect(arguments(config, "trainin"))


def test_the_flag_is_before_the_variable_and_its_first_context_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("first", "second"):
        (tmp_path / name).write_text(CONFIG.format(current=name))
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/none:{tmp_path}/first:{tmp_path}/second")
    assert _server(connect(arguments())) == "https://first.example:6443"
    assert _server(connect(arguments(tmp_path / "second"))) == "https://second.example:6443"


def _server(cluster: Cluster) -> str:
    return cluster._requests.server
