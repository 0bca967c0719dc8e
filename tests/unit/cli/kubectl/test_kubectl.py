"""The verbs of the plugin, from the arguments to the printed text."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from reveal_cli.kubectl import cluster, cost, open_findings, silence, unsilence, why
from reveal_cli.kubectl.__main__ import build_parser, main
from reveal_contract.costs import Cost, PodCost
from reveal_contract.finding import Severity, State
from reveal_contract.kube.names import ANNOTATION_SILENCED_BECAUSE, ANNOTATION_SILENCED_UNTIL
from support.finding_factory import START_NS, finding
from support.reports_api import ReportsApi

MILD = finding("mild", victims=("ml/trainer-0",), severity=Severity.LOW)
WORST = finding("worst", victims=("ml/trainer-1",), severity=Severity.HIGH)
OVER = finding(
    "over", victims=("ml/trainer-0",), state=State.RESOLVED, resolved_ns=START_NS + 10**9
)


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> ReportsApi:
    """A cluster with two open findings and a resolved one, for all verbs."""
    found = ReportsApi(MILD, OVER, WORST)
    for verb in (open_findings, why, cost, silence, unsilence):
        monkeypatch.setattr(verb, "connect", lambda _: cluster.Cluster(found))
    return found


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(list(words)) == 0
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Return the only line of the error."""
    assert main(list(words)) == 1
    [line] = capsys.readouterr().err.splitlines()
    return line


def names(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    items = json.loads(printed(capsys, *words, "-o", "json"))["items"]
    return [item["spec"]["findingID"] for item in items]


@pytest.mark.usefixtures("api")
def test_without_a_verb_open_findings_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys)
    assert "p-n1-worst" in text
    assert "p-n1-over" not in text
    assert names(capsys) == ["worst", "mild"]


def test_a_quiet_cluster_has_a_sentence(
    api: ReportsApi, capsys: pytest.CaptureFixture[str]
) -> None:
    api.items.clear()
    assert printed(capsys) == "No open findings.\n"
    assert names(capsys) == []


@pytest.mark.usefixtures("api")
def test_why_has_open_findings_before_recent_findings(capsys: pytest.CaptureFixture[str]) -> None:
    assert names(capsys, "why", "trainer") == ["worst", "mild", "over"]
    assert names(capsys, "why", "trainer-0", "--namespace", "ml") == ["mild", "over"]
    assert names(capsys, "why", "n1") == ["worst", "mild", "over"]
    assert printed(capsys, "why", "p-n1-over").startswith("Medium, Resolved: ")


@pytest.mark.usefixtures("api")
def test_why_an_unknown_name_has_similar_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert refused(capsys, "why", "trainr") == (
        "kubectl reveal: no report mentions trainr: did you mean trainer or trainer-1 or trainer-0?"
    )
    line = refused(capsys, "why", "trainer-0", "-n", "other\x1b[2J")
    assert "in namespace other\\x1b[2J: it has no findings now, or the name is wrong" in line


def test_costs_are_added_by_job(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lost = (PodCost("ml/llm-0", 2.0), PodCost("ml/llm-1", 1.0), PodCost("dev/try-0", 0.5))
    dear = finding("dear", cost=Cost(8, 1.0, 3.5, 1.0, 4.0), pod_costs=lost)
    found = ReportsApi(MILD, dear)
    monkeypatch.setattr(cost, "connect", lambda _: cluster.Cluster(found))
    assert printed(capsys, "cost", "--price", "2.50") == (
        "JOB       GPU-HOURS   AMOUNT   FINDINGS   OPEN   CAUSES\n"
        "ml/llm    3.0         7.50     1          1      -\n"
        "dev/try   0.5         1.25     1          1      -\n"
        "TOTAL     3.5         8.75\n"
    )
    found_sums = json.loads(printed(capsys, "cost", "--by", "namespace", "-o", "json"))
    about = {"amounts": [], "findings": 1, "open": 1, "causes": ["-"]}
    assert found_sums == {
        "by": "namespace",
        "items": [
            {"name": "ml", "lostGPUHours": 3.0, **about},
            {"name": "dev", "lostGPUHours": 0.5, **about},
        ],
    }


@pytest.mark.usefixtures("api")
def test_without_gpus_there_is_no_cost(capsys: pytest.CaptureFixture[str]) -> None:
    text = "No finding has a cost: it is known only of jobs with GPUs.\n"
    assert printed(capsys, "cost") == text


@pytest.mark.parametrize("price", ["-1", "nan", "inf", "2,50", "2.50 usd", "2.50 USD ", ""])
def test_a_price_is_a_number(price: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["cost", f"--price={price}"])
    assert ended.value.code == 2
    assert f"{price!r} is not a price: write 2.50 or '2.50 USD'" in capsys.readouterr().err


def test_a_silence_is_listed_explained_and_ended(
    api: ReportsApi, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("silence", "p-n1-worst", "--for", "2h", "--because", " new\n memory ")
    text = printed(capsys, *words)
    assert text == "p-n1-worst is silenced until 2023-11-15T01:13:20Z (for 2h00m): new memory\n"
    annotations = api.items["p-n1-worst"]["metadata"]["annotations"]
    assert annotations == {
        ANNOTATION_SILENCED_UNTIL: "2023-11-15T01:13:20Z",
        ANNOTATION_SILENCED_BECAUSE: "new memory",
    }
    assert "2h00m" in printed(capsys)
    assert "new memory" in printed(capsys, "why", "p-n1-worst")
    [item] = [each for each in listed(capsys) if each["silence"]]
    assert item["silence"] == {"until": "2023-11-15T01:13:20.000Z", "reason": "new memory"}
    assert printed(capsys, "unsilence", "p-n1-worst") == "p-n1-worst is not silenced\n"
    assert [each for each in listed(capsys) if each["silence"]] == []


def listed(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(printed(capsys, "-o", "json"))["items"]
    return found


@pytest.mark.usefixtures("api")
def test_a_silence_as_json_is_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("silence", "p-n1-worst", "--for", "90s", "--because", "x", "-o", "json")
    assert json.loads(printed(capsys, *words))["silence"]["reason"] == "x"
    assert json.loads(printed(capsys, "-o", "json", "unsilence", "p-n1-worst"))["silence"] is None


def test_a_resolved_report_is_not_silenced(
    api: ReportsApi, capsys: pytest.CaptureFixture[str]
) -> None:
    line = refused(capsys, "silence", "p-n1-over", "--for", "2h", "--because", "x")
    assert "is resolved" in line
    assert "PATCH" not in api.requests


@pytest.mark.parametrize(
    "flags",
    [
        ("--for", "2h"),
        ("--because", "x"),
        ("--for", "2h", "--because", " "),
        ("--for", "forever", "--because", "x"),
        ("--for", "721h", "--because", "x"),
        ("--for", "2h", "--because", "x" * 257),
    ],
)
def test_a_silence_needs_an_end_and_a_reason(
    flags: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["silence", "p-n1-worst", *flags])
    assert caught.value.code == 2
    assert "usage: kubectl reveal silence" in capsys.readouterr().err


def test_common_flags_stand_before_or_after_the_verb() -> None:
    flags = ["--context", "c", "--kubeconfig", "f", "-o", "json"]
    for words in ([*flags, "why", "x"], ["why", "x", *flags], flags):
        parsed = build_parser().parse_args(words)
        assert (parsed.context, parsed.kubeconfig, parsed.output) == ("c", "f", "json")
    parsed = build_parser().parse_args(["why", "x"])
    assert (parsed.context, parsed.kubeconfig, parsed.output) == (None, None, "text")


def test_reports_of_another_version_are_counted(
    api: ReportsApi, capsys: pytest.CaptureFixture[str]
) -> None:
    api.items["p-n1-mild"]["status"]["severity"] = "Catastrophic"
    assert main([]) == 0
    assert "1 report is left out" in capsys.readouterr().err


def test_an_unreachable_server_is_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "config"
    config.write_text(
        "{apiVersion: v1, kind: Config, current-context: c, users: [{name: u, user: {token: t}}],"
        " clusters: [{name: c, cluster: {server: 'https://127.0.0.1:9'}}],"
        " contexts: [{name: c, context: {cluster: c, user: u}}]}"
    )
    line = refused(capsys, "--kubeconfig", str(config))
    assert "the API server https://127.0.0.1:9 cannot be reached" in line


def test_a_missing_module_gives_a_sentence() -> None:
    code = "import sys; sys.modules['kubernetes'] = None; from reveal_cli.kubectl import __main__;"
    code += f"sys.exit(__main__.main(['--kubeconfig', {__file__!r}]))"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 1
    assert "the Python module kubernetes is not installed" in done.stderr
    assert "[local,kubernetes]" in done.stderr


def test_a_list_needs_no_numerical_package() -> None:
    code = "import sys; import reveal_cli.kubectl.__main__; print('numpy' in sys.modules)"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout == "False\n"
